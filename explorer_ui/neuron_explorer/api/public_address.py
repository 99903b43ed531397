"""Addresses under which a proxy shows this server.

An editor that runs in the browser forwards ports of the machine that it works on, below a path of its own.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from flask import Flask, Response, request

from neuron_explorer.api.routes import PREFIX
from neuron_tools.errors import UsageError
from neuron_tools.frozen import frozen

_ROOT = re.compile(r"(/[\w.~-]+)*")


@frozen
class PublicAddress:
    """An address of this server.

    Attributes:
        origin: "https://editor.example:8443".
        root: What stands before the paths of pages: "/proxy/3001", or nothing.
    """

    origin: str
    root: str

    @property
    def host(self) -> str:
        """What browsers ask for in the header Host."""
        return urlsplit(self.origin).netloc


def parse_address(text: str) -> PublicAddress:
    """An address as an editor tells it.

    Raises:
        UsageError: It is none of a web server.
    """
    parts = urlsplit(text)
    root = parts.path.rstrip("/")
    is_web = parts.scheme in ("http", "https") and parts.netloc and "@" not in parts.netloc
    if not is_web or not _ROOT.fullmatch(root):
        raise UsageError(f"{text[:200]!r} is no address of a web server.")
    return PublicAddress(f"{parts.scheme}://{parts.netloc}", root)


class PublicAddresses:
    """The addresses that the editor told, by host."""

    def __init__(self) -> None:
        self._by_host: dict[str, PublicAddress] = {}

    def of(self, host: str) -> PublicAddress | None:
        """The address by which a browser asks for a host."""
        return self._by_host.get(host)

    def register(self, server: Flask) -> None:
        """Put the route on a server by which an editor tells an address."""
        server.add_url_rule(f"{PREFIX}/public", "public", self._tell, methods=["POST"])

    def _tell(self) -> Response | tuple[str, int]:
        if not request.headers.get("Authorization", "").startswith("Bearer "):
            return "Addresses are told with the token in the header Authorization.\n", 403
        body = request.get_json(silent=True)
        try:
            address = parse_address(str(body.get("url", "")) if isinstance(body, dict) else "")
        except UsageError as error:
            return f"{error}\n", 400
        self._by_host[address.host] = address
        return Response("{}", mimetype="application/json")
