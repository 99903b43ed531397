"""Where a server listens, and the token without which it must not be reached from other machines."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from neuron_tools.errors import NeuronToolsError, UsageError


class TokenFileError(UsageError):
    """A token file cannot be read, or has no token."""


class OpenAddressError(NeuronToolsError):
    """Other machines could ask a server that has no token."""


def is_loopback(name: str) -> bool:
    """Whether a name or an address means this machine only."""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def read_token(path: str | None) -> str | None:
    """The token in a file; None without a file.

    Raises:
        TokenFileError: The file cannot be read or is empty.
    """
    if path is None:
        return None
    try:
        token = Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise TokenFileError(f"{path}: {(error.strerror or 'cannot be read').lower()}.") from error
    except UnicodeDecodeError as error:
        raise TokenFileError(f"{path} is not text: write a token into it.") from error
    if not token:
        raise TokenFileError(f"{path} is empty: write a token into it.")
    return token


def require_token(address: str, token: str | None) -> None:
    """Let a server listen on an address only if it is this machine's own or there is a token.

    Raises:
        OpenAddressError: Anybody could ask.
    """
    if not token and not is_loopback(address):
        raise OpenAddressError(
            f"{address} can be reached from other machines: give --token-file, or listen on 127.0.0.1."
        )
