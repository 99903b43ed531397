"""`python -m neuron_explorer.api.serve`: an Explorer for one editor window.

It prints one JSON line with its address and token, takes in profiles as the editor names them, and ends when
its standard input is closed, so that none outlives the editor, however that ends. The routes that the editor
needs answer at once; the pages for a browser are loaded when somebody asks for one.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from threading import Lock, Thread
from typing import Any

from flask import Flask
from werkzeug.serving import BaseWSGIServer, make_server

from neuron_explorer.api import routes as editor_routes
from neuron_explorer.api.preview_process import PreviewProcess
from neuron_explorer.api.previews import Previews
from neuron_explorer.api.public_address import PublicAddresses
from neuron_explorer.library import ProfileLibrary
from neuron_explorer.timeline import routes as timeline_routes
from neuron_tools.listening import LOOPBACK
from neuron_tools.web_access import Access, protect

EDITOR_PATHS = (f"{editor_routes.PREFIX}/", "/data/")

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def make_application(library: ProfileLibrary, access: Access) -> Application:
    """The editor's routes, and behind them the browser's pages; both answer only what `access` allows."""
    editor = Flask("neuron_explorer_editor")
    timeline_routes.register(editor, library)
    editor_routes.register(editor, library)
    Previews(library, PreviewProcess()).register(editor)
    public = PublicAddresses()
    public.register(editor)
    protect(editor, access)
    lock = Lock()

    @cache
    def pages(origin: str, root: str) -> Flask:
        from neuron_explorer.server import make_guarded_server

        return make_guarded_server(library, replace(access, public=(origin,) if origin else ()), root=root)

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        # A proxy may put its own slash before ours.
        path = environ["PATH_INFO"] = f"/{environ.get('PATH_INFO', '').lstrip('/')}"
        address = public.of(environ.get("HTTP_HOST", ""))
        chosen = editor
        if address or not path.startswith(EDITOR_PATHS):
            with lock:
                chosen = pages(address.origin, address.root) if address else pages("", "")
        answer: Iterable[bytes] = chosen.wsgi_app(environ, start_response)
        return answer

    return application


def main() -> None:
    """Serve until standard input ends."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    Thread(target=_end_with_input, daemon=True).start()
    with ProfileLibrary() as library, socket.create_server((LOOPBACK, 0)) as listener:
        access = Access("neuron-explorer", listener.getsockname()[1])
        server = _server(make_application(library, access), listener)
        url = f"http://{access.host}:{access.port}/"
        print(json.dumps({"url": url, "token": access.token, "open": access.opening}), flush=True)
        server.serve_forever()


def _server(application: Application, listener: socket.socket) -> BaseWSGIServer:
    port = listener.getsockname()[1]
    return make_server(LOOPBACK, port, application, threaded=True, fd=listener.fileno())


def _end_with_input() -> None:
    """End the process at once: requests that still run have nobody to answer to."""
    while os.read(sys.stdin.fileno(), 1 << 12):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
