"""Users who sign in at a provider of OpenID Connect, by the authorization code flow with PKCE (Authlib).

A TOML file says where:

    issuer = "https://accounts.example"
    client_id = "neuron-explorer"
    client_secret_file = "/run/secret/client-secret"
    users = ["ann@example.com", "@team.example.com"]

`users` names who may come in by their verified e-mail addresses: whole ones, or "@domain".
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flask import Flask, Request, Response, redirect, session

from neuron_tools.errors import UsageError
from neuron_tools.web_access import DATA_PATHS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

START, RETURN = "/sign-in", "/sign-in/return"
USER, WANTED = "user", "wanted"
SCOPE = "openid email"
TIMEOUT_S = 10


class SignInFileError(UsageError):
    """The file that says where users sign in cannot be used."""


@dataclass(frozen=True)
class SignIn:
    """Where users sign in, and who may.

    Attributes:
        issuer: The provider's address.
        client_id, client_secret: How the Explorer is known there.
        users: Who may come in: e-mail addresses, or "@domain".
        origin: Under which browsers know the Explorer: "https://explorer.example".
    """

    issuer: str
    client_id: str
    client_secret: str
    users: tuple[str, ...]
    origin: str

    def install(self, server: Flask) -> None:
        """Put the routes of signing in on a server, and keep who signed in, in a cookie of its session."""
        from authlib.integrations.flask_client import OAuth

        server.secret_key = secrets.token_bytes(32)
        server.config.update(
            SESSION_COOKIE_NAME="neuron-explorer-user",
            SESSION_COOKIE_HTTPONLY=True,
            SESSION_COOKIE_SAMESITE="Lax",
            SESSION_COOKIE_SECURE=self.origin.startswith("https:"),
        )
        provider = OAuth(server).register(
            "provider",
            server_metadata_url=f"{self.issuer}/.well-known/openid-configuration",
            client_id=self.client_id,
            client_secret=self.client_secret,
            client_kwargs={"scope": SCOPE, "code_challenge_method": "S256", "timeout": TIMEOUT_S},
        )
        server.add_url_rule(START, "sign_in", lambda: self._start(provider))
        server.add_url_rule(RETURN, "sign_in_return", lambda: self._return(provider))

    def who(self, request: Request) -> str | Response:
        """The user who signed in; else the way to do so."""
        if request.path in (START, RETURN):
            return "nobody yet"
        name = session.get(USER)
        if isinstance(name, str):
            return name
        if request.path.startswith(DATA_PATHS) or request.method != "GET":
            return _text("Sign in first: open the Explorer's first page.", 401)
        session[WANTED] = f"/{request.full_path.lstrip('/').rstrip('?')}"
        answer: Response = redirect(START)
        return answer

    def _start(self, provider: Any) -> Any:
        return self._asked(lambda: provider.authorize_redirect(f"{self.origin}{RETURN}"))

    def _return(self, provider: Any) -> Any:
        claims = self._asked(lambda: provider.authorize_access_token().get("userinfo") or {})
        if isinstance(claims, Response):
            return claims
        name = self.user_of(claims)
        if name is None:
            return _text("Not allowed. Ask who runs this Explorer to name you.", 403)
        wanted = str(session.get(WANTED, "/"))
        session.clear()
        session[USER] = name
        return redirect(wanted)

    def user_of(self, claims: Mapping[str, Any]) -> str | None:
        """The user whom a provider's claims are about; None if the user may not come in.

        Args:
            claims: Of an ID token (OpenID Connect Core 1.0, section 5.1): `email`, `email_verified`.
        """
        address = str(claims.get("email", "")).lower()
        allowed = any(address == user or (user[:1] == "@" and address.endswith(user)) for user in self.users)
        return address if allowed and claims.get("email_verified") is True else None

    def _asked(self, ask: Callable[[], Any]) -> Any:
        """What the provider answers; a sentence if it cannot be asked, or refuses."""
        from authlib.common.errors import AuthlibBaseError
        from joserfc.errors import JoseError
        from requests import RequestException

        try:
            return ask()
        except (AuthlibBaseError, JoseError, RequestException, RuntimeError, KeyError, ValueError) as error:
            return _text(f"{self.issuer} signed nobody in ({type(error).__name__}): open {START} again.", 502)


def _text(sentence: str, status: int) -> Response:
    return Response(f"{sentence}\n", status=status, mimetype="text/plain")


def read_sign_in(path: str, origins: Sequence[str], own: str) -> SignIn:
    """Where users sign in, as a TOML file says.

    Args:
        origins: Under which a proxy shows the Explorer; the first is the one users come back to.
        own: The Explorer's own address, used if there is none.

    Raises:
        SignInFileError: The file cannot be read, lacks something, or names nobody.
    """
    content = _read_toml(Path(path))
    missing = [
        name for name in ("issuer", "client_id", "client_secret_file") if not _is_text(content.get(name))
    ]
    if missing:
        raise SignInFileError(f"{path} has no {' and no '.join(missing)}: write them as text.")
    users = content.get("users")
    if not isinstance(users, list) or not users or not all(_is_text(user) for user in users):
        raise SignInFileError(f'{path} names nobody: write users = ["ann@example.com", "@team.example"].')
    try:
        secret = Path(content["client_secret_file"]).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SignInFileError(
            f"{content['client_secret_file']} cannot be read: write the secret there."
        ) from error
    names = tuple(user.lower() for user in users)
    origin = origins[0] if origins else own
    return SignIn(content["issuer"].rstrip("/"), content["client_id"], secret, names, origin)


def _read_toml(path: Path) -> Mapping[str, Any]:
    try:
        content: Mapping[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SignInFileError(f"{path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SignInFileError(f"{path} is no valid TOML: {str(error).splitlines()[0]}.") from error
    return content


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
