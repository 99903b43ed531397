"""A profile inside a notebook's page: the frame works there, and in no page of another site."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from neuron_explorer.notebook import Frame, show
from tests.browser.explorer import WAIT_MS
from tests.unit.neuron_profile.tiny_profile import make_profile

pytestmark = pytest.mark.browser
__all__ = ["make_profile"]


@contextmanager
def notebook_page(frame: Frame) -> Iterator[int]:
    """The port of a page that has the frame in it, as a notebook has it in a cell's output."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(f"<!doctype html><title>notebook</title>{frame._repr_html_()}".encode())

        def log_message(self, *arguments: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """An empty page."""
    page = chromium.new_page()
    page.set_default_timeout(WAIT_MS)
    yield page
    page.close()


def test_the_frame_shows_the_page_in_a_notebook(page: Any, make_profile: Any) -> None:
    frame = show(make_profile(), page="/overview")
    with notebook_page(frame) as port:
        page.goto(f"http://localhost:{port}/")
        inside = page.frame_locator("iframe")
        inside.locator("h1", has_text="Overview").wait_for()
        inside.locator(".figures", has_text="200 ns").wait_for()
        assert "token" not in inside.locator("body").evaluate("() => location.href")


def test_another_site_cannot_frame_the_page(page: Any, make_profile: Any) -> None:
    frame = show(make_profile(), page="/overview")
    page.route(
        "http://evil.example/",
        lambda route: route.fulfill(content_type="text/html", body=f"<!doctype html>{frame._repr_html_()}"),
    )
    with page.expect_event("framenavigated", lambda one: one.parent_frame is not None) as navigated:
        page.goto("http://evil.example/")
    assert navigated.value.url.startswith("chrome-error:")
