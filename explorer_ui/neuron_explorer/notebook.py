"""Shows profiles inside a notebook: a frame with a page of an Explorer that runs in the notebook's process.

Example:
    >>> from neuron_explorer.notebook import show
    >>> show("train.nprof")  # the timeline
    >>> show("train.nprof", page="/memory", height=900)
"""

from __future__ import annotations

import atexit
from dataclasses import dataclass
from html import escape
from pathlib import Path
from threading import Lock, Thread
from urllib.parse import urlencode

from neuron_explorer.library import ProfileLibrary, profile_id
from neuron_tools.errors import UsageError
from neuron_tools.frozen import frozen
from neuron_tools.listening import bind
from neuron_tools.profile.reader import Profile
from neuron_tools.web_access import TOKEN_PARAMETER, Access

HOST = "localhost"
"""Cookies reach a frame only on the notebook's own site, and notebooks run at this name."""
NOTEBOOKS = ("http://localhost:*", "http://127.0.0.1:*", "https://localhost:*", "vscode-webview:")


@frozen
class Frame:
    """A page of the Explorer; a notebook shows it where it is the value of a cell."""

    url: str
    height: int

    def _repr_html_(self) -> str:
        return (
            f'<iframe src="{escape(self.url, quote=True)}" width="100%" height="{self.height}" '
            'style="border:0" title="Neuron Explorer"></iframe>'
        )


@dataclass(frozen=True)
class _Server:
    library: ProfileLibrary
    access: Access


_lock = Lock()
_running: list[_Server] = []


def show(profile: str | Path | Profile, *, page: str = "/timeline", height: int = 640) -> Frame:
    """A page of a profile, for the output of a notebook's cell.

    The first call starts a server in this process, on the loopback interface; it ends with the process.

    Args:
        profile: A profile, or its path.
        page: Address of the page: "/timeline", "/overview", "/memory" and so on.
        height: In pixels.

    Raises:
        NotAProfileError: The path is no profile.
        UsageError: There is no such page.
        PortError: There is no free port.
    """
    from neuron_explorer.pages import find_page

    if find_page(page) is None:
        raise UsageError(
            f"The Explorer has no page {page}: take /timeline, /overview or another of its pages."
        )
    path = profile.path if isinstance(profile, Profile) else Path(profile)
    server = _server()
    server.library.add(path)
    query = urlencode({"profile": profile_id(path), TOKEN_PARAMETER: server.access.token})
    return Frame(f"http://{HOST}:{server.access.port}{page}?{query}", height)


def _server() -> _Server:
    """The server of this process; started when it is first needed."""
    with _lock:
        if not _running:
            _running.append(_start())
        return _running[0]


def _start() -> _Server:
    from neuron_explorer.server import make_guarded_server, wsgi_server

    listener = bind(0)
    access = Access("neuron-explorer", listener.getsockname()[1], host=HOST, framed_by=NOTEBOOKS)
    library = ProfileLibrary()
    server = wsgi_server(make_guarded_server(library, access), listener)
    Thread(target=server.serve_forever, name="neuron-explorer", daemon=True).start()
    atexit.register(library.close)
    return _Server(library, access)
