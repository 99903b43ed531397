"""Takes traces that the user dropped onto the page: the body of a request, written as it comes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from flask import Flask, Response, jsonify, request

from neuron_explorer.imports import start_import
from neuron_explorer.page import Site

CHUNK_BYTES = 1 << 20
MOST_BYTES = 64 << 30
_NO_NAMES = ("", ".", "..")


def register(server: Flask, site: Site) -> None:
    """Add the route of uploads to a server."""

    def upload() -> Response:
        site.sharing.require_writing()
        name = Path(request.args.get("name", "")).name.replace("\0", "")
        folder = Path(tempfile.mkdtemp(prefix="neuron-explorer-"))
        path = folder / (name[-120:] if name not in _NO_NAMES else "trace")
        written = 0
        with path.open("wb") as stream:
            while chunk := request.stream.read(CHUNK_BYTES):
                written += len(chunk)
                if written > MOST_BYTES:
                    break
                stream.write(chunk)
        task = start_import(site, [path], remove=True)
        answer: Response = jsonify({"task": task.id, "title": task.title})
        return answer

    server.add_url_rule("/upload", "upload", upload, methods=["POST"])
