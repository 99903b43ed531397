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

from neuron_monitor.errors import ListenError
from neuron_tools.web_access import Access, new_token, protect

PORTS_TO_TRY = 20


def serve(app: Dash, address: str, port: int, token: str | None, stopped: threading.Event) -> None:
    """Serve a page until the user stops it.

    Args:
        address: Where to listen.
        port: Port to listen on, or the next free one after it; 0 for any.
        token: The secret in the address; a new one if None.
        stopped: Set when the server ends.

    Raises:
        ListenError: The port and those after it are taken, or the address is none of this machine.
    """
    with bind(address, port) as listener:
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


def bind(address: str, port: int) -> socket.socket:
    """A listening socket on a port, or on the next free one.

    Raises:
        ListenError: None of them is free, or the address cannot be listened on.
    """
    last = port if port == 0 else min(port + PORTS_TO_TRY, 65536) - 1
    for candidate in range(port, last + 1):
        listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address, candidate))
            listener.listen()
            return listener
        except OSError as error:
            listener.close()
            reason = (error.strerror or str(error)).lower()
            if candidate == last:
                raise ListenError(f"{address} ports {port} to {last} cannot be used: {reason}.") from error
    raise ListenError(f"{address} port {port} cannot be used.")
