import socket

import pytest

from neuron_explorer import server
from neuron_explorer.server import Place, PortError, access_to, bind, serve
from neuron_tools.listening import OpenAddressError


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


def test_an_address_of_another_machine() -> None:
    with pytest.raises(PortError, match=r"^192\.0\.2\.1 is no address of this machine"):
        bind(0, "192.0.2.1")


def test_other_machines_need_a_token(tmp_path) -> None:
    with pytest.raises(OpenAddressError, match="give --token-file"):
        serve((tmp_path,), Place(0, "0.0.0.0"), open_browser=False)


def test_a_given_token_and_a_proxy_let_in() -> None:
    access = access_to(Place(0, "0.0.0.0", "secret", ("https://explorer.example",)), 3001)
    assert access.url == f"http://{socket.gethostname()}:3001/?token=secret"
    assert {"explorer.example", "localhost:3001"} <= access.hosts
    assert "https://explorer.example" in access.origins
    assert access_to(Place(0), 3001).token != access_to(Place(0), 3001).token
