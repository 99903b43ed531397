"""Where a server listens, and the token without which it must not be reached from other machines."""

from __future__ import annotations

import errno
import ipaddress
import socket
from pathlib import Path

import click

from neuron_tools.errors import NeuronToolsError, UsageError

LOOPBACK = "127.0.0.1"
PORTS_TO_TRY = 20


class PortError(NeuronToolsError):
    """A server cannot listen where it was told to."""


class TokenFileError(UsageError):
    """A token file cannot be read, or has no token."""


class OpenAddressError(NeuronToolsError):
    """Other machines could ask a server that has no token."""


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


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


def bind(port: int, address: str = LOOPBACK) -> socket.socket:
    """A listening socket on a port, or, with a word on standard error, on the next free one; 0 for any.

    Raises:
        PortError: None of them is free, the port needs other rights, or the address is none of this machine.
    """
    last = port if port == 0 else min(port + PORTS_TO_TRY, 65536) - 1
    for candidate in range(port, last + 1):
        listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address, candidate))
            listener.listen()
        except OSError as error:
            listener.close()
            if error.errno != errno.EADDRINUSE:
                raise _refusal(address, candidate, error) from error
        else:
            if candidate != port:
                click.echo(f"Port {port} is taken: {candidate} is used instead.", err=True)
            return listener
    raise PortError(f"The ports {port} to {last} are taken: choose another with -p.")


def _refusal(address: str, port: int, error: OSError) -> PortError:
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return PortError(f"{address} is no address of this machine: choose another with --address.")
    return PortError(f"Port {port} cannot be used ({error.strerror}): choose another with -p.")
