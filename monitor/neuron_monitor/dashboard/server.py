"""Serves the page from one process on one port."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from dataclasses import replace

import click
from dash import Dash
from flask import Flask
from werkzeug.serving import make_server

from neuron_tools.listening import bind
from neuron_tools.web_access import Access, new_token, protect


def serve(app: Dash, address: str, port: int, token: str | None, stopped: threading.Event) -> None:
    """Serve a page until the user stops it.

    Args:
        address: Where to listen.
        port: Port to listen on, or the next free one after it; 0 for any.
        token: The secret in the address; a new one if None.
        stopped: Set when the server ends.

    Raises:
        PortError: The port and those after it are taken, or the address is none of this machine.
    """
    with bind(port, address) as listener:
        number = int(listener.getsockname()[1])
        shown = socket.gethostname() if address in ("0.0.0.0", "::") else address
        access = Access(
            "neuron-monitor",
            number,
            token or new_token(),
            host=shown,
            names=(socket.gethostname(), socket.getfqdn()),
        )
        server = guard(app, access)
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        click.echo(f"The dashboard is at {access.url}")
        click.echo("Press Ctrl-C to stop.")
        # A service manager's SIGTERM ends it as Ctrl-C does, with everything written.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            make_server(address, number, server, threaded=True, fd=listener.fileno()).serve_forever()
        finally:
            signal.signal(signal.SIGTERM, before)
            stopped.set()


def guard(app: Dash, access: Access) -> Flask:
    """The web server of a page, answering only to requests that `access` allows."""
    hashes = [f"'{value.strip(chr(39))}'" for value in app.csp_hashes()]
    server: Flask = app.server
    protect(server, replace(access, script_hashes=hashes))
    return server
