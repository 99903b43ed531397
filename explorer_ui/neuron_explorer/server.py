"""Serves the Explorer of one profile from one process on the loopback interface."""

from __future__ import annotations

import errno
import logging
import os
import socket
import webbrowser
from dataclasses import replace

import click
from flask import Flask
from werkzeug.serving import make_server

from neuron_explorer.app import make_app
from neuron_explorer.content import Content, read_content
from neuron_tools.errors import NeuronToolsError
from neuron_tools.profile.reader import open_profile
from neuron_tools.web_access import Access, protect

LOOPBACK = "127.0.0.1"
PORTS_TO_TRY = 20


class PortError(NeuronToolsError):
    """No port to listen on."""


def serve(path: str, port: int, *, open_browser: bool) -> None:
    """Serve a profile until the user stops it.

    Args:
        port: Port to listen on, or the next free one after it; 0 for any.

    Raises:
        NotAProfileError: The path is no profile.
        PortError: The port and those after it are taken.
    """
    with open_profile(path) as profile, bind(port) as listener:
        access = Access("neuron-explorer", listener.getsockname()[1])
        server = make_guarded_server(read_content(profile), access)
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        click.echo(f"{profile.path.name} is at {access.url}")
        click.echo("Press Ctrl-C to stop.")
        if open_browser and _has_display():
            webbrowser.open(access.url)
        make_server(LOOPBACK, access.port, server, threaded=True, fd=listener.fileno()).serve_forever()


def make_guarded_server(content: Content, access: Access) -> Flask:
    """The web server of a profile, answering only to requests that `access` allows."""
    app = make_app(content)
    hashes = [f"'{value.strip(chr(39))}'" for value in app.csp_hashes()]
    server: Flask = app.server
    protect(server, replace(access, script_hashes=hashes))
    return server


def bind(port: int) -> socket.socket:
    """A listening socket on a port, or on the next free one.

    Raises:
        PortError: None of them is free, or the port needs other rights.
    """
    last = port if port == 0 else min(port + PORTS_TO_TRY, 65536) - 1
    for candidate in range(port, last + 1):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((LOOPBACK, candidate))
            listener.listen()
            return listener
        except OSError as error:
            listener.close()
            if error.errno != errno.EADDRINUSE:
                raise PortError(
                    f"Port {candidate} cannot be used ({error.strerror}): choose another with -p."
                ) from error
    raise PortError(f"The ports {port} to {last} are taken: choose another with -p.")


def _has_display() -> bool:
    """Whether a browser with windows can open; a text browser would take over the terminal."""
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
