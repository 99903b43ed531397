"""A profile inside a notebook's page: the frame works there, and in no page of another site."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from neuron_explorer.notebook import Frame, show
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


def test_the_frame_shows_the_page_in_a_notebook(chromium: Any, make_profile: Any) -> None:
    frame = show(make_profile(), page="/overview")
    context = chromium.new_context()
    page = context.new_page()
    with notebook_page(frame) as port:
        page.goto(f"http://localhost:{port}/")
        inside = page.frame_locator("iframe")
        inside.locator("h1", has_text="Overview").wait_for()
        inside.locator(".figures", has_text="200 ns").wait_for()
        assert "token" not in page.frames[1].url
    context.close()


def test_another_site_cannot_frame_the_page(chromium: Any, make_profile: Any) -> None:
    frame = show(make_profile(), page="/overview")
    context = chromium.new_context()
    page = context.new_page()
    page.route(
        "http://evil.example/",
        lambda route: route.fulfill(content_type="text/html", body=f"<!doctype html>{frame._repr_html_()}"),
    )
    page.goto("http://evil.example/")
    assert page.frames[1].url.startswith("chrome-error:")
    context.close()
