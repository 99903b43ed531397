"""Whose program connected: told by the kernel's list, of which a test writes one."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from neuron_tools import loopback_peer
from neuron_tools.loopback_peer import is_of_this_user

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
LINE = "   0: 0100007F:{peer:04X} 0100007F:{own:04X} 01 00000000:00000000 00:00000000 00000000 {user} 0 1\n"
PEER, OWN = 40_000, 3001
NOBODY = 65_534


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def write(*users: int) -> None:
        lines = [LINE.format(peer=PEER, own=OWN, user=user) for user in users]
        (tmp_path / "tcp").write_text(HEAD + "".join(lines))

    monkeypatch.setattr(loopback_peer, "CONNECTIONS", tmp_path / "tcp")
    return write


def test_only_this_user_and_root_are_taken(listed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getuid", lambda: 1000)
    for user, is_taken in ((1000, True), (0, True), (1001, False)):
        listed(user)
        assert is_of_this_user("127.0.0.1", PEER, OWN) is is_taken


def test_who_is_not_listed_is_not_taken(listed) -> None:
    listed(os.getuid())
    assert not is_of_this_user("127.0.0.1", PEER + 1, OWN)
    assert not is_of_this_user("127.0.0.2", PEER, OWN)
    assert not is_of_this_user("127.0.0.1", PEER, OWN + 1)
    assert not is_of_this_user("::1", PEER, OWN)


def test_where_the_system_does_not_tell_everybody_is_taken(listed) -> None:
    assert is_of_this_user("127.0.0.1", PEER, OWN)


def test_a_connection_of_this_process_is_this_user_s() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as peer, server.accept()[0]:
            assert is_of_this_user("127.0.0.1", peer.getsockname()[1], port)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can run a program as another user")
def test_another_user_s_program_is_not_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        child = os.fork()
        if not child:
            os.setuid(NOBODY)
            socket.create_connection(("127.0.0.1", port)).recv(1)
            os._exit(0)
        connection, (host, peer_port) = server.accept()
        with connection:
            assert not is_of_this_user(host, peer_port, port)
        os.waitpid(child, 0)
