"""Serves the Explorer from one process on one port, of the loopback interface unless it is told otherwise."""

from __future__ import annotations

import logging
import os
import socket
import webbrowser
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import click
from flask import Flask
from werkzeug.serving import BaseWSGIServer, make_server

from neuron_explorer import downloads, uploads
from neuron_explorer.analyses import Analyses
from neuron_explorer.api import routes as api_routes
from neuron_explorer.app import make_app
from neuron_explorer.library import ProfileLibrary
from neuron_explorer.malformed import refuse_malformed
from neuron_explorer.memory_arenas import share_arenas
from neuron_explorer.page import Site
from neuron_explorer.sharing import NOT_SHARED, SharedStore, Sharing
from neuron_explorer.sign_in import read_sign_in
from neuron_explorer.tasks import Tasks
from neuron_explorer.timeline import ahead, band_routes, marker_routes, routes as timeline_routes
from neuron_explorer.user_store import UserStore
from neuron_explorer.users import ProxiedUsers
from neuron_explorer.warm_up import warmed_up
from neuron_explorer.workspace import routes as workspace_routes
from neuron_tools.frozen import frozen
from neuron_tools.listening import LOOPBACK, bind, require_token
from neuron_tools.web_access import Access, Users, new_token, protect

ANY_ADDRESS = ("0.0.0.0", "::")


@frozen
class Place:
    """Where the Explorer listens, and by which names it may be asked.

    Attributes:
        port: Port to listen on, or the next free one after it; 0 for any.
        address: Beyond this machine only with a token.
        token: The secret in the printed address; a new one for each run if None.
        origins: Origins under which a proxy shows the Explorer, e.g. "https://explorer.example".
        is_read_only: Nothing is taken in, removed or remembered.
        user_header: The header in which a proxy names the user, "" if none does.
        sign_in_file: The TOML file that says where users sign in; None where they do not.
    """

    port: int
    address: str = LOOPBACK
    token: str | None = None
    origins: tuple[str, ...] = ()
    is_read_only: bool = False
    user_header: str = ""
    sign_in_file: str | None = None


def serve(paths: Sequence[str | Path], place: Place, *, open_browser: bool) -> None:
    """Serve profiles until the user stops it.

    Args:
        paths: Profiles, and folders of profiles.
        place: Where to listen.

    Raises:
        NotAProfileError: A path is neither a profile nor a folder.
        OpenAddressError: Other machines could ask, and there is no token.
        PortError: The port and those after it are taken.
    """
    require_token(place.address, place.token)
    share_arenas()
    with ProfileLibrary(paths) as library, bind(place.port, place.address) as listener:
        access = access_to(place, listener.getsockname()[1])
        sharing = Sharing(place.is_read_only, access.users is not None)
        analyses = Analyses(library)
        with warmed_up(library, analyses):
            server = make_guarded_server(
                library, access, SharedStore(sharing), sharing=sharing, analyses=analyses
            )
            logging.getLogger("werkzeug").setLevel(logging.ERROR)
            url = start_address(library, access)
            click.echo(f"{_what(library)} at {url}")
            click.echo("Press Ctrl-C to stop.")
            if open_browser and access.users is None and _has_display():
                webbrowser.open(access.opening_url(url))
            wsgi_server(server, listener).serve_forever()


def access_to(place: Place, port: int) -> Access:
    """Who may ask the Explorer at a place, once its port is known.

    Raises:
        SignInFileError: The file that says where users sign in cannot be used.
    """
    access = Access(
        "neuron-explorer",
        port,
        place.token or new_token(),
        host=socket.gethostname() if place.address in ANY_ADDRESS else place.address,
        public=place.origins,
    )
    return replace(access, users=_users(place, access))


def _users(place: Place, access: Access) -> Users | None:
    if place.sign_in_file is not None:
        return read_sign_in(place.sign_in_file, place.origins, f"http://{access.host}:{access.port}")
    return ProxiedUsers(place.user_header, access.token) if place.user_header else None


def start_address(library: ProfileLibrary, access: Access) -> str:
    """The address to open: of the only profile its workspace, else the list; without the token for users."""
    if access.users is not None:
        return access.public[0] if access.public else access.url.partition("?")[0]
    entries = library.entries()
    page = f"workspace?{urlencode({'profile': entries[0].id})}&" if len(entries) == 1 else "?"
    return access.url.replace("/?", f"/{page}", 1)


def _what(library: ProfileLibrary) -> str:
    entries = library.entries()
    return f"{entries[0].name} is" if len(entries) == 1 else f"{len(entries)} profiles are"


def wsgi_server(server: Flask, listener: socket.socket) -> BaseWSGIServer:
    """The server behind a listening socket; a thread per request."""
    host, port = listener.getsockname()[:2]
    return make_server(host, port, server, threaded=True, fd=listener.fileno())


def make_guarded_server(
    library: ProfileLibrary,
    access: Access,
    store: UserStore | None = None,
    root: str = "",
    sharing: Sharing = NOT_SHARED,
    analyses: Analyses | None = None,
) -> Flask:
    """The web server of a library, answering only to requests that `access` allows.

    Args:
        root: What a proxy puts before the paths of pages: "/proxy/3001".
        sharing: How several people use it.
        analyses: Where results are kept; its own if None.
    """
    site = Site(library, analyses or Analyses(library), Tasks(), store or UserStore(), root, sharing)
    app = make_app(site)
    server: Flask = app.server
    downloads.register(server, site)
    uploads.register(server, site)
    timeline_routes.register(server, library)
    ahead.register(server, site)
    band_routes.register(server, site)
    marker_routes.register(server, site)
    api_routes.register(server, library, sharing)
    workspace_routes.register(server, site)
    hashes = [f"'{value.strip(chr(39))}'" for value in app.csp_hashes()]
    protect(server, replace(access, script_hashes=hashes))
    refuse_malformed(app)
    return server


def _has_display() -> bool:
    """Whether a browser with windows can open; a text browser would take over the terminal."""
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
