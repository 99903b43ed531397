"""Whose program is at the other end of a connection within this machine."""

from __future__ import annotations

import os
import struct
from ipaddress import IPv4Address
from pathlib import Path

CONNECTIONS = Path("/proc/net/tcp")
"""Source: Linux, Documentation/networking/proc_net_tcp.rst. Addresses stand as the machine stores them."""
OWN, OTHER_END, USER = 1, 2, 7
ROOT = 0


def is_of_this_user(peer: str, peer_port: int, own_port: int) -> bool:
    """Whether the program that connected from an IPv4 address runs on this machine as this user, or as root.

    Where the system does not tell, as outside of Linux, it is taken for one.
    """
    try:
        connections = [line.split() for line in CONNECTIONS.read_text().splitlines()[1:]]
    except OSError:
        return True
    try:
        end = f"{_as_listed(peer)}:{peer_port:04X}"
    except ValueError:
        return False
    users = [
        int(row[USER])
        for row in connections
        if row[OWN] == end and row[OTHER_END].endswith(f":{own_port:04X}")
    ]
    return users != [] and all(user in (os.getuid(), ROOT) for user in users)


def _as_listed(address: str) -> str:
    return f"{struct.unpack('=I', IPv4Address(address).packed)[0]:08X}"
