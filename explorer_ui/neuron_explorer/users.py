"""Users whom a proxy tells apart: it signs them in, and names each in a header of what it passes on."""

from __future__ import annotations

from flask import Flask, Request, Response

from neuron_tools.frozen import frozen
from neuron_tools.web_access import bearer, matches


@frozen
class ProxiedUsers:
    """Users as a proxy names them, which shows with the token that it is the proxy.

    Attributes:
        header: The header with a user's name, such as "X-Forwarded-User".
        token: What the proxy sends as `Authorization: Bearer ...`.
    """

    header: str
    token: str

    def install(self, server: Flask) -> None:
        """Signing in is the proxy's matter."""

    def who(self, request: Request) -> str | Response:
        """The user whom the proxy names."""
        if not matches(bearer(request), self.token):
            return _refusal("Not allowed. Open the address of the proxy in front of this Explorer.")
        name = request.headers.get(self.header, "").strip()
        return name or _refusal(f"Not allowed. The proxy named no user in {self.header}.")


def _refusal(sentence: str) -> Response:
    return Response(f"{sentence}\n", status=403, mimetype="text/plain")
