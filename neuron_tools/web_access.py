"""Who may talk to a page of ours: the user's own browser, and what the page may do.

A profile holds source code, a monitor shows command lines. So every request must name this server as its host
(no DNS rebinding), come from one of our own pages or from none (no other site), and carry the token that was
printed: in the header Authorization (programs), or first in the address, then in a cookie (browsers). The
policy that goes with each answer lets pages load from this server only.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit

from flask import Flask, Request, Response, g, has_app_context, redirect, request

from neuron_tools.listening import LOOPBACK
from neuron_tools.loopback_peer import is_of_this_user

TOKEN_BYTES = 24
TOKEN_PARAMETER = "token"
OPENING_PARAMETER = "open"
REFUSAL = "Not allowed. Open the address that {program} printed; it carries the token.\n"
DATA_PATHS = ("/download/", "/data/", "/api/", "/upload")
"""Paths that only our own pages and programs ask for: another site cannot lead a browser there."""
NO_SOURCE = "'none'"


def new_token() -> str:
    """A fresh secret for one run of the server."""
    return secrets.token_urlsafe(TOKEN_BYTES)


class Users(Protocol):
    """Tells the users of a server apart that several people share."""

    def install(self, server: Flask) -> None:
        """Put the routes on a server that signing in takes."""

    def who(self, request: Request) -> str | Response:
        """The name of the user who asks, or what to answer somebody who is none."""


@dataclass(frozen=True)
class Access:
    """The rules of one running server.

    Attributes:
        program: The command that serves, e.g. "neuron-explorer".
        port: Port that the server listens on.
        script_hashes: CSP sources of the inline scripts that our own page has.
        host: Name in the printed address.
        names: Further names by which browsers may ask, e.g. of the machine.
        public: Origins under which a proxy shows this server to browsers, e.g. "https://editor.example:8443".
        framed_by: CSP sources of pages that may show ours in a frame, e.g. a notebook's; none by default.
        opening: Stands for the token in the address with which we start a browser. All users of the machine
            see that one in the list of processes, so it lets in this user's programs only.
        users: Tells users apart who share the server; None where whoever has the token is its only user.
    """

    program: str
    port: int
    token: str = field(default_factory=new_token, repr=False)
    script_hashes: Sequence[str] = ()
    host: str = LOOPBACK
    names: Sequence[str] = ()
    public: Sequence[str] = ()
    framed_by: Sequence[str] = ()
    opening: str = field(default_factory=new_token, repr=False)
    users: Users | None = None

    @property
    def hosts(self) -> frozenset[str]:
        """Values of the Host header that mean this server."""
        names = {self.host, LOOPBACK, "localhost", *self.names}
        return frozenset(f"{name}:{self.port}" for name in names) | {
            urlsplit(origin).netloc for origin in self.public
        }

    @property
    def origins(self) -> frozenset[str]:
        """Values of the Origin header that mean a page of this server."""
        return frozenset(f"http://{host}" for host in self.hosts) | frozenset(self.public)

    @property
    def cookie_name(self) -> str:
        """Cookies are shared by all ports of a host, so the port is in the name."""
        return f"{self.program}-{self.port}"

    @property
    def url(self) -> str:
        """The address to open."""
        return f"http://{self.host}:{self.port}/?{urlencode({TOKEN_PARAMETER: self.token})}"

    def opening_url(self, url: str) -> str:
        """An address with the token as one that other users may see."""
        secret = urlencode({TOKEN_PARAMETER: self.token})
        return url.replace(secret, urlencode({OPENING_PARAMETER: self.opening}))

    def policy(self) -> str:
        """The Content-Security-Policy. Styles are inline because the plots make them so."""
        scripts = " ".join(["'self'", *self.script_hashes])
        return (
            f"default-src 'none'; script-src {scripts}; style-src 'self' 'unsafe-inline'; "
            "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; "
            f"base-uri 'none'; form-action 'none'; frame-ancestors {' '.join(self.framed_by) or NO_SOURCE}"
        )


def protect(server: Flask, access: Access) -> None:
    """Check every request to a server, and put the policy on every answer."""

    def check() -> Response | None:
        if not _is_ours(request, access):
            return _refuse(access)
        if any(ord(character) < ord(" ") for character in request.path):
            return Response("The address is malformed.\n", status=400, mimetype="text/plain")
        if access.users is not None:
            return _check_user(access, access.users)
        g.came_with_header = matches(bearer(request), access.token)
        if g.came_with_header:
            return None
        if matches(request.args.get(TOKEN_PARAMETER), access.token):
            return _admit(request, access)
        if matches(request.args.get(OPENING_PARAMETER), access.opening) and _is_of_this_user(request, access):
            return _admit(request, access)
        if matches(request.cookies.get(access.cookie_name), access.token) and not _is_led_here(request):
            return None
        return _refuse(access)

    def add_policy(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = access.policy()
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    if access.users is not None:
        access.users.install(server)
    server.before_request(check)
    server.after_request(add_policy)


def _check_user(access: Access, users: Users) -> Response | None:
    """Let in whom the rules for users name, unless another site's page made the browser ask."""
    found = users.who(request)
    if isinstance(found, Response):
        return found
    if _is_led_here(request):
        return _refuse(access)
    g.user = found
    return None


def current_user() -> str:
    """The user who asks, where several share the server; "" where there is one, and outside of requests."""
    return str(g.get("user", "")) if has_app_context() else ""


def came_with_header() -> bool:
    """Whether the running request was let in by the token in its header, which no page in a browser has."""
    return bool(g.get("came_with_header", False))


def _is_led_here(request: Request) -> bool:
    """Whether another site made the browser ask with our cookie: it may open a page, and nothing else.

    Source: W3C Fetch Metadata, Sec-Fetch-Site and Sec-Fetch-Mode. Browsers without it send no such header.
    """
    if request.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin"):
        return False
    opens_page = request.headers.get("Sec-Fetch-Mode") == "navigate" and request.method in ("GET", "HEAD")
    return not opens_page or request.path.startswith(DATA_PATHS)


def _is_ours(request: Request, access: Access) -> bool:
    """Whether a request names this server and does not come from another site."""
    origin = request.headers.get("Origin")
    return request.host in access.hosts and (origin is None or origin in access.origins)


def _is_of_this_user(request: Request, access: Access) -> bool:
    port = int(request.environ.get("REMOTE_PORT") or 0)
    return is_of_this_user(request.remote_addr or "", port, access.port)


def matches(given: str | None, token: str) -> bool:
    """Whether a secret was given, compared in a time that tells nothing of it."""
    return given is not None and hmac.compare_digest(given.encode(), token.encode())


def bearer(request: Request) -> str | None:
    """The token of a program that sends it with each request, as an editor does."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token if scheme == "Bearer" else None


def _admit(request: Request, access: Access) -> Response:
    """Keep the token in a cookie and take it out of the address, so that it stays out of the history."""
    kept = [
        (name, value)
        for name, value in parse_qsl(request.query_string.decode())
        if name not in (TOKEN_PARAMETER, OPENING_PARAMETER)
    ]
    # Behind a proxy the page has another path, whose last part only is the same.
    path = f"./{request.path.rpartition('/')[2]}" if access.public else request.path
    response: Response = redirect(path + (f"?{urlencode(kept)}" if kept else ""))
    response.set_cookie(access.cookie_name, access.token, httponly=True, samesite="Lax")
    return response


def _refuse(access: Access) -> Response:
    return Response(REFUSAL.format(program=access.program), status=403, mimetype="text/plain")
