"""The Explorer in a real browser: it runs under its own strict policy, and text from a profile stays text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.unit.neuron_profile.tiny_profile import make_profile, tiny_tables

pytestmark = pytest.mark.browser
__all__ = ["make_profile", "tiny_tables"]

SCRIPT = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


@contextmanager
def served(profile: Path) -> Iterator[str]:
    """The address of an Explorer of a profile, while it is served."""
    from werkzeug.serving import make_server

    from neuron_explorer.content import read_content
    from neuron_explorer.server import LOOPBACK, bind, make_guarded_server
    from neuron_tools import open_profile
    from neuron_tools.web_access import Access

    with open_profile(profile) as opened, bind(0) as listener:
        access = Access("neuron-explorer", listener.getsockname()[1])
        application = make_guarded_server(read_content(opened), access)
        server = make_server(LOOPBACK, access.port, application, threaded=True, fd=listener.fileno())
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield access.url
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def page_at(browser: Any, url: str) -> Iterator[tuple[Any, list[str]]]:
    """A page at an address, and everything that it complains about or asks others for."""
    page = browser.new_page()
    complaints: list[str] = []
    own = url.split("/?")[0]
    page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: request.url.startswith(own) or complaints.append(request.url))
    try:
        page.goto(url)
        yield page, complaints
    finally:
        page.close()


def test_all_pages_work_under_the_policy_and_load_nothing_from_elsewhere(
    chromium: Any, make_profile: Any
) -> None:
    with served(make_profile()) as url, page_at(chromium, url) as (page, complaints):
        page.wait_for_selector(".js-plotly-plot .bars")
        assert "token" not in page.url
        page.click("nav >> text=Modules")
        page.wait_for_selector("td >> text=(whole program)")
        page.click("nav >> text=Source")
        page.wait_for_selector("table.code tr.heat-5 >> text=y = layer(x)")
        page.click("nav >> text=Time")
        page.wait_for_selector("td >> text=Tensor (process 0, core 0)")
        page.wait_for_selector(".js-plotly-plot .bars")
        page.click("nav >> text=Advice")
        page.wait_for_selector("text=Nothing was found")
        assert complaints == []


def test_script_in_names_does_not_run(chromium: Any, make_profile: Any, tiny_tables: Any) -> None:
    framework = {**tiny_tables["FrameworkInstruction"], "framework_name": [SCRIPT] * 3}
    source = {**tiny_tables["SourceFile"], "text": [f"\n{SCRIPT}\n"]}
    tables = {**tiny_tables, "FrameworkInstruction": framework, "SourceFile": source}
    with served(make_profile(tables=tables)) as url, page_at(chromium, url) as (page, complaints):
        page.wait_for_selector("table.data td >> text=<script>")
        page.click("nav >> text=Source")
        page.wait_for_selector("table.code >> text=<script>")
        assert page.title() == "tiny.nprof - Neuron Explorer"
        assert complaints == []
