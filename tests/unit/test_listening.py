import socket
from pathlib import Path

import pytest

from neuron_tools import listening
from neuron_tools.listening import (
    OpenAddressError,
    PortError,
    TokenFileError,
    bind,
    is_loopback,
    read_token,
    require_token,
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("localhost", True), ("127.8.0.1", True), ("::1", True), ("0.0.0.0", False), ("h", False)],
)
def test_what_means_this_machine_only(name: str, expected: bool) -> None:
    assert is_loopback(name) == expected


def test_a_token_is_read_without_the_line_end(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    assert read_token(str(tmp_path / "token")) == "secret"
    assert read_token(None) is None


@pytest.mark.parametrize(
    ("content", "message"), [(None, "no such file"), (b"\n", "is empty"), (b"\xff", "is not text")]
)
def test_a_file_without_a_token_is_one_sentence(tmp_path: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    with pytest.raises(TokenFileError, match=message):
        read_token(str(tmp_path / "token"))


def test_other_machines_need_a_token() -> None:
    require_token("127.0.0.1", None)
    require_token("0.0.0.0", "secret")
    with pytest.raises(OpenAddressError, match=r"^0\.0\.0\.0 can be reached from other machines"):
        require_token("0.0.0.0", None)


def test_a_taken_port_gives_the_next_free_one_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with bind(0) as first:
        port = first.getsockname()[1]
        assert capsys.readouterr().err == ""
        with bind(port) as second:
            address, chosen = second.getsockname()
    assert address == "127.0.0.1"
    assert port < chosen < port + listening.PORTS_TO_TRY
    assert capsys.readouterr().err == f"Port {port} is taken: {chosen} is used instead.\n"


def test_no_free_port_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "PORTS_TO_TRY", 1)
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
