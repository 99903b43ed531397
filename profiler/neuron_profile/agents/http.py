"""Serves the tools over HTTP, to programs of this machine that have the token.

The checks are those of the Explorer (`neuron_tools.web_access`): every request names this server as its host,
comes from one of its own pages or from none, and carries the token in its header Authorization.
"""

from __future__ import annotations

import hmac
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import click
import uvicorn
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from neuron_tools.errors import NeuronToolsError
from neuron_tools.listening import LOOPBACK
from neuron_tools.web_access import REFUSAL, Access, new_token

PATH = "/mcp"
PROGRAM = "neuron-profile mcp"
Answer = Callable[[Scope, Receive, Send], Awaitable[None]]


class PortTakenError(NeuronToolsError):
    """Nothing can listen on the port."""


def serve(server: MCPServer, port: int, token: str | None) -> None:
    """Serve until the user stops it.

    Args:
        port: Port of the loopback interface; 0 for any that is free.
        token: The secret that every request carries; a new one for each run if None.

    Raises:
        PortTakenError: Another program listens there.
    """
    with _listener(port) as listener:
        access = Access(PROGRAM, listener.getsockname()[1], token or new_token())
        click.echo(f"Serving http://{LOOPBACK}:{access.port}{PATH}")
        click.echo(f"Header:  Authorization: Bearer {access.token}")
        click.echo("Press Ctrl-C to stop.")
        settings = uvicorn.Config(make_app(server, access), log_level="warning", access_log=False)
        uvicorn.Server(settings).run(sockets=[listener])


def make_app(server: MCPServer, access: Access) -> ASGIApp:
    """The server as an application that answers only who may ask."""
    security = TransportSecuritySettings(
        allowed_hosts=sorted(access.hosts), allowed_origins=sorted(access.origins)
    )
    return guarded(server.streamable_http_app(streamable_http_path=PATH, transport_security=security), access)


def guarded(app: ASGIApp, access: Access) -> Answer:
    """An application that refuses every request of another host or origin, or without the token."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan" and not may_ask(_headers(scope), access):
            await _refuse(scope, send)
        else:
            await app(scope, receive, send)

    return answer


def may_ask(headers: Mapping[str, str], access: Access) -> bool:
    """Whether a request with these headers, their names in lower case, is answered."""
    origin = headers.get("origin")
    scheme, _, token = headers.get("authorization", "").partition(" ")
    is_ours = headers.get("host") in access.hosts and (origin is None or origin in access.origins)
    return is_ours and scheme == "Bearer" and hmac.compare_digest(token.encode(), access.token.encode())


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


async def _refuse(scope: Scope, send: Send) -> None:
    if scope["type"] != "http":
        await send({"type": "websocket.close"})
        return
    kind: list[tuple[bytes, bytes]] = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
    start: dict[str, Any] = {"type": "http.response.start", "status": 401, "headers": kind}
    await send(start)
    await send({"type": "http.response.body", "body": REFUSAL.format(program=PROGRAM).encode()})


def _listener(port: int) -> socket.socket:
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise PortTakenError(
            f"Port {port} cannot be listened on ({error.strerror}): choose another with --port, or 0 for any."
        ) from error
