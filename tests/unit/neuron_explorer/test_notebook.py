import urllib.error
import urllib.request

import pytest

from neuron_explorer import notebook
from neuron_tools.errors import UsageError


def test_a_profile_is_shown_in_a_frame(make_profile) -> None:
    frame = notebook.show(make_profile(), page="/overview", height=300)
    assert 'height="300"' in frame._repr_html_()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(frame.url) as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert b"react-entry-point" in answer.read()
    assert "frame-ancestors http://localhost:*" in policy
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(frame.url.replace("token=", "token=x"))


def test_two_profiles_share_a_server(make_profile) -> None:
    one, two = notebook.show(make_profile("a.nprof")), notebook.show(make_profile("b.nprof"))
    assert one.url.split("/timeline")[0] == two.url.split("/timeline")[0]
    assert one.url != two.url


def test_an_unknown_page_is_refused(make_profile) -> None:
    with pytest.raises(UsageError, match="no page"):
        notebook.show(make_profile(), page="/nowhere")
