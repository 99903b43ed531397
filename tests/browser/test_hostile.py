"""Script in every text of a profile, and pages of others in the same browser: nothing runs, nothing leaks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from neuron_explorer.library import profile_id
from neuron_explorer.notebook import show
from neuron_explorer.pages import pages
from tests.browser.explorer import Visit, finish_requests, served, visit
from tests.browser.test_explorer_notebook import notebook_page, page
from tests.fixtures.hostile import write_hostile_profile
from tests.unit.neuron_profile.tiny_profile import TINY_TABLES

pytestmark = pytest.mark.browser
__all__ = ["page"]

PATHS = sorted(each.path for each in pages())
CAN_BE_READ = """async (addresses) => {
    const read = [];
    for (const address of addresses) {
        for (const mode of ["cors", "no-cors"]) {
            for (const method of ["GET", "POST"]) {
                try {
                    const options = { mode, method, credentials: "include" };
                    const answer = await fetch(address, options);
                    if (await answer.text()) read.push(`${method} ${mode} ${address}`);
                } catch {}
            }
        }
    }
    return read;
}"""
CAN_BE_LOADED = """async (addresses) => {
    const tried = (kind, address) => new Promise((tell) => {
        const element = document.createElement(kind);
        element.onload = () => tell(kind === "iframe" ? null : `${kind} ${address}`);
        element.onerror = () => tell(null);
        element.src = address;
        document.body.append(element);
        setTimeout(() => tell(null), 3000);
    });
    const kinds = ["script", "img"];
    const tries = addresses.flatMap((address) => kinds.map((kind) => tried(kind, address)));
    return (await Promise.all(tries)).filter(Boolean);
}"""
WINDOW_IS_OPEN = """(address) => {
    const opened = window.open(address);
    return new Promise((tell) => setTimeout(() => {
        try { tell(Boolean(opened.document.body.textContent)); } catch { tell(false); }
    }, 2000));
}"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_hostile_profile(tmp_path_factory.mktemp("hostile"), TINY_TABLES)


def is_owned(page: Any) -> bool:
    """Whether a script of the profile ran in any frame."""
    return any(frame.evaluate("Boolean(window.owned)") for frame in page.frames)


@pytest.mark.slow
def test_no_page_of_the_explorer_runs_a_text(chromium: Any, hostile: Path, tmp_path: Path) -> None:
    with served([hostile], tmp_path / "store") as url, visit(chromium, url) as found:
        for path in PATHS:
            found.go(f"{path}?profile={profile_id(hostile)}")
            assert not is_owned(found.page), path
        assert found.complaints == []


def test_a_notebook_runs_no_text(page: Any, hostile: Path) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    frame = show(hostile, page="/overview")
    with notebook_page(frame) as port:
        page.goto(f"http://localhost:{port}/")
        page.frame_locator("iframe").locator("h1", has_text="Overview").wait_for()
        page.frame_locator("iframe").get_by_text("<img src=x").first.wait_for()
        assert not is_owned(page)
        page.goto("about:blank")
    finish_requests()
    assert not [address for address in asked if "leak.example" in address]


@contextmanager
def other_server() -> Iterator[str]:
    """A page of somebody else on another port of the same host."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>other</title><body></body>")

        def log_message(self, *arguments: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("where", ["another site", "another port of this host"])
def test_pages_of_others_in_the_same_browser_read_and_change_nothing(
    chromium: Any, hostile: Path, tmp_path: Path, where: str
) -> None:
    with served([hostile], tmp_path / "store") as url, visit(chromium, url) as found, other_server() as other:
        theirs = found.page.context.new_page()
        theirs.route(
            "http://evil.example/", lambda route: route.fulfill(body="<body>", content_type="text/html")
        )
        theirs.goto(other if where == "another port of this host" else "http://evil.example/")
        sql = f"/download/query?profile={profile_id(hostile)}&sql=SELECT+1"
        paths = (
            "/",
            "/_dash-layout",
            "/assets/explorer.js",
            "/api/editor/profiles",
            "/upload?name=evil.json",
            sql,
        )
        addresses = [found.origin + path for path in paths]
        statuses = statuses_of(theirs, found)
        assert theirs.evaluate(CAN_BE_READ, addresses) == []
        assert theirs.evaluate(CAN_BE_LOADED, addresses) == []
        assert set(statuses) <= {403}  # a browser may not even ask this host for another site
        assert theirs.evaluate(WINDOW_IS_OPEN, found.origin + "/overview") is False
        found.go("/")
        assert found.page.locator("#profile-list li, #profile-list tr").get_by_text("evil").count() == 0


def statuses_of(page: Any, found: Visit) -> list[int]:
    """Filled with the statuses of what the Explorer answers to a page."""
    statuses: list[int] = []
    page.on("response", lambda answer: answer.url.startswith(found.origin) and statuses.append(answer.status))
    return statuses


def test_a_stranger_s_browser_is_told_nothing(chromium: Any, hostile: Path, tmp_path: Path) -> None:
    with served([hostile], tmp_path / "store") as url, visit(chromium, url) as found:
        stranger = chromium.new_context().new_page()
        for path in ("/", f"/overview?profile={profile_id(hostile)}"):
            answer = stranger.goto(found.origin + path)
            assert answer.status == 403
            assert "hostile" not in answer.text()
        assert stranger.context.cookies() == []
        stranger.context.close()
