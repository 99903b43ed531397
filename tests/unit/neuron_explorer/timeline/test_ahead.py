"""The timeline that a page opens with is told with the page, and is the one that the page will have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from neuron_explorer.library import ProfileLibrary, profile_id
from neuron_explorer.server import make_guarded_server
from neuron_tools.web_access import Access

ACCESS = Access("neuron-explorer", 3001)
HEADERS = {"Host": "127.0.0.1:3001", "Authorization": f"Bearer {ACCESS.token}"}
LINK = re.compile(r'<link id="timeline-ahead"[^>]* href="([^"]*)">')


class Client:
    """Asks a server of one profile."""

    def __init__(self, server: Any, profile: str) -> None:
        self._client = server.test_client()
        self.profile = profile

    def get(self, path: str) -> Any:
        return self._client.get(path, headers=HEADERS)

    def link(self, path: str) -> str:
        """The address that the head of a page names."""
        found = LINK.search(self.get(path).text)
        return found[1].replace("&amp;", "&") if found else ""


@pytest.fixture
def client(make_profile) -> Iterator[Client]:
    path = make_profile()
    with ProfileLibrary([path]) as library:
        yield Client(make_guarded_server(library, ACCESS), profile_id(path))


@pytest.mark.parametrize("page", ["workspace", "timeline"])
def test_the_answer_is_what_the_page_will_have(client: Client, page: str) -> None:
    answer = client.get(client.link(f"/{page}?profile={client.profile}")).json
    begin_ns, end_ns = answer["props"]["range"]
    tracks = client.get(f"/data/{client.profile}/tracks?start={begin_ns}&end={end_ns}").json
    assert answer["tracks"] == tracks
    assert answer["props"]["profile"] == client.profile
    assert bool(answer["layout"]) == (page == "workspace")
    assert answer["has_steps"] is False  # the profile has none


@pytest.mark.parametrize(
    "address", ["/workspace", "/overview?profile={}", "/operators?profile={}", "/nothing?profile={}"]
)
def test_other_pages_name_none(client: Client, address: str) -> None:
    page = client.get(address.format(client.profile)).text
    assert "timeline-ahead" not in page
    assert "page-scripts" not in page


@pytest.mark.parametrize(
    "more", ["a=compare", "compare=other", "l=50:timeline;50:source", "t=5-9", "max=source"]
)
def test_a_workspace_that_opens_otherwise_has_none(client: Client, more: str) -> None:
    answer = client.get(client.link(f"/workspace?profile={client.profile}&{more}"))
    assert (answer.status_code, answer.data) == (204, b"")


def test_all_scripts_of_the_page_wait_in_their_order(client: Client) -> None:
    scripts = re.compile(r'<script[^>]* src="([^"]*)"')
    plain, opened = (
        client.get(f"/{page}?profile={client.profile}").text for page in ("overview", "timeline")
    )
    first, waiting = opened.split('<template id="page-scripts">')
    found = scripts.findall(first)
    assert [re.search(r"explorer\.js|neuron_timeline", one) is not None for one in found] == [True, True]
    assert scripts.findall(waiting) == [one for one in scripts.findall(plain) if one not in found]
    assert "new DashRenderer()" in waiting


def test_the_icon_is_in_the_page(client: Client) -> None:
    page = client.get("/overview?profile=it").text
    assert '<link rel="icon" href="data:image/svg+xml,%3Csvg' in page
    assert "favicon" not in page


def test_what_cannot_be_opened_is_told_in_a_sentence(client: Client) -> None:
    answer = client.get(client.link("/timeline?profile=%22%3Cb%3E"))
    assert answer.status_code == 404
    assert answer.mimetype == "text/plain"
    assert client.get("/data/it/ahead").status_code == 204
