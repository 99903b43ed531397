"""Serves the Explorer to a real browser, and notes everything that a page complains about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

LARGEST_CALLBACK_BYTES = 100_000
WAIT_MS = 60_000


# The number of rows is told with the first of them, which are drawn a moment later.
GRID_IS_FILLED = """() => {
    const count = document.querySelector("#operators-count");
    if (count === null) return true;
    if (count.textContent === "") return false;
    return !/^[1-9].* rows$/.test(count.textContent) || document.querySelector(".ag-row .ag-cell") !== null;
}"""


@dataclass
class Visit:
    """A browser page on the Explorer.

    Attributes:
        complaints: Errors of the console and of scripts, failed requests, and requests to other servers.
        callback_bytes: Size of each callback's answer.
    """

    page: Any
    origin: str
    complaints: list[str] = field(default_factory=list)
    callback_bytes: list[int] = field(default_factory=list)

    def go(self, path: str) -> None:
        """Open an address and wait until all of the page is there."""
        self.page.goto(self.origin + path)
        self.settle()

    def settle(self) -> None:
        """Wait until the page has content, nothing is being computed, and all charts are drawn."""
        self.page.wait_for_selector("#page > *", timeout=WAIT_MS)
        self.page.wait_for_selector(".state.loading", state="detached", timeout=WAIT_MS)
        empty = ".dash-graph:not(:has(.main-svg)), [data-table]:not(:has(table))"
        self.page.wait_for_selector(empty, state="detached", timeout=WAIT_MS)
        self.page.wait_for_function(GRID_IS_FILLED, timeout=WAIT_MS)


@contextmanager
def served(paths: Sequence[Path], store: Path) -> Iterator[str]:
    """The address of an Explorer of profiles, token and all, while it is served."""
    from neuron_explorer.library import ProfileLibrary
    from neuron_explorer.server import bind, make_guarded_server, wsgi_server
    from neuron_explorer.user_store import UserStore
    from neuron_tools.web_access import Access

    with ProfileLibrary(paths) as library, bind(0) as listener:
        access = Access("neuron-explorer", listener.getsockname()[1])
        server = wsgi_server(make_guarded_server(library, access, UserStore(store)), listener)
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield access.url
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def visit(browser: Any, url: str, **options: Any) -> Iterator[Visit]:
    """A page that has been let in."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, **options)
    page = context.new_page()
    found = Visit(page, url.split("/?")[0])
    page.on("console", lambda message: message.type == "error" and found.complaints.append(message.text))
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.on("request", lambda request: _note_request(found, request.url))
    page.on("requestfailed", lambda request: _note_failure(found, request))
    page.on("response", lambda response: _note_response(found, response))
    try:
        page.goto(url)
        page.wait_for_selector("#page > *", timeout=WAIT_MS)
        yield found
    finally:
        context.close()


def _note_request(found: Visit, url: str) -> None:
    if not url.startswith((found.origin, "data:", "blob:")):
        found.complaints.append(f"asked another server: {url}")


def _note_failure(found: Visit, request: Any) -> None:
    if request.failure != "net::ERR_ABORTED":  # the browser's own doing when a page is left
        found.complaints.append(f"{request.url}: {request.failure}")


def _note_response(found: Visit, response: Any) -> None:
    if response.status >= 400:
        found.complaints.append(f"{response.status} of {response.url}")
    if "_dash-update-component" in response.url:
        found.callback_bytes.append(int(response.headers.get("content-length", 0)))
