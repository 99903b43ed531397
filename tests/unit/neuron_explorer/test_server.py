import socket

import pytest

from neuron_explorer import server
from neuron_explorer.server import PortError, bind


def test_a_taken_port_gives_the_next_free_one() -> None:
    with bind(0) as first:
        port = first.getsockname()[1]
        with bind(port) as second:
            address, chosen = second.getsockname()
    assert address == "127.0.0.1"
    assert port < chosen < port + server.PORTS_TO_TRY


def test_no_free_port_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PORTS_TO_TRY", 1)
    with bind(0) as first:
        port = first.getsockname()[1]
        with pytest.raises(
            PortError, match=f"^The ports {port} to {port} are taken: choose another with -p.$"
        ):
            bind(port)


def test_a_port_that_needs_other_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: socket.socket, address: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(PortError, match=r"Port 80 cannot be used \(Permission denied\)"):
        bind(80)
