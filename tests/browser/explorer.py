"""Serves the Explorer to a real browser, and notes everything that a page complains about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread, enumerate as enumerate_threads
from typing import Any
from urllib.parse import urlsplit

LARGEST_CALLBACK_BYTES = 100_000
WAIT_MS = 120_000
REQUEST_S = 20.0

# Asked once a frame of the browser: nothing is computed, nothing is missing, nothing came since the last one.
# A grid, its rows and a chart are drawn by scripts that arrive, or begin, when no callback is under way.
IS_SETTLED = """() => {
    const page = document.querySelector("#page");
    const missing = [
        ".state.loading", ".dash-graph:not(:has(.main-svg))", "[data-table]:not(:has(table))",
        ".body.flush > div:empty",
    ];
    const hasNoRows = /^0 rows/.test(document.querySelector("#operators-count")?.textContent ?? "");
    const isFilled = (grid) =>
        hasNoRows || [...grid.querySelectorAll(".ag-row .ag-cell")].some((cell) => cell.textContent !== "");
    const isComplete = page?.firstElementChild
        && window.store?.getState().isLoading === false
        && document.querySelector(missing.join(", ")) === null
        && document.querySelector(".ahead") === null
        && [...document.querySelectorAll(".ag-root-wrapper")].every(isFilled)
        && [...(window.neuronTimelines?.values() ?? [])].every((timeline) => timeline.statistics().isSharp);
    const seen = isComplete && `${page.getElementsByTagName("*").length} ${page.textContent.length}`;
    const isSettled = seen && seen === window.seenInLastFrame;
    window.seenInLastFrame = seen;
    return isSettled;
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

    def begin(self) -> None:
        """Leave what is open, so that what it still asks for is nobody else's complaint."""
        self.page.goto("about:blank")
        self.complaints.clear()
        self.callback_bytes.clear()

    def go(self, path: str) -> None:
        """Open an address and wait until all of the page is there."""
        self.page.goto(self.origin + path)
        self.settle()

    def reload(self) -> None:
        """Load the page again and wait until all of it is there."""
        self.page.reload()
        self.settle()

    def settle(self) -> None:
        """Wait until the page has content, nothing is being computed, and all charts and rows are drawn."""
        self.page.evaluate("() => { window.seenInLastFrame = undefined; }")
        self.page.wait_for_function(IS_SETTLED, polling="raf", timeout=WAIT_MS)

    def wait_for_query(self, part: str) -> None:
        """Wait until the address has something behind its path."""
        self.page.wait_for_function("(part) => location.search.includes(part)", arg=part, timeout=WAIT_MS)


@contextmanager
def served(paths: Sequence[Path], store: Path) -> Iterator[str]:
    """The address of an Explorer of profiles, token and all, while it is served."""
    from neuron_explorer.library import ProfileLibrary
    from neuron_explorer.server import make_guarded_server, wsgi_server
    from neuron_explorer.user_store import UserStore
    from neuron_tools.listening import bind
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
            finish_requests()


def finish_requests() -> None:
    """Wait for requests that a closed page left behind: a process that ends amidst one is aborted."""
    for thread in enumerate_threads():
        if "process_request_thread" in thread.name:
            thread.join(REQUEST_S)


@contextmanager
def visit(browser: Any, url: str, **options: Any) -> Iterator[Visit]:
    """A page that has been let in."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, **options)
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    found = Visit(page, "{0.scheme}://{0.netloc}".format(urlsplit(url)))
    page.on("console", lambda message: message.type == "error" and found.complaints.append(message.text))
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.on("request", lambda request: _note_request(found, request.url))
    page.on("requestfailed", lambda request: _note_failure(found, request))
    page.on("response", lambda response: _note_response(found, response))
    try:
        page.goto(url)
        found.settle()
        yield found
    finally:
        context.close()


def _note_request(found: Visit, url: str) -> None:
    if not url.startswith((found.origin, "data:", "blob:", "about:")):
        found.complaints.append(f"asked another server: {url}")


def _note_failure(found: Visit, request: Any) -> None:
    if request.failure != "net::ERR_ABORTED":  # the browser's own doing when a page is left
        found.complaints.append(f"{request.url}: {request.failure}")


def _note_response(found: Visit, response: Any) -> None:
    if response.status >= 400:
        found.complaints.append(f"{response.status} of {response.url}")
    if "_dash-update-component" in response.url:
        found.callback_bytes.append(int(response.headers.get("content-length", 0)))
