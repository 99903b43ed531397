"""Limits of the container that this process runs in, where it runs in one: cgroup version 2 or 1.

A container sees its own group at the mount point. A service of the host sees the host's root there, so its
own limits (`MemoryMax=` in a unit) are not mistaken for the machine's.
"""

from __future__ import annotations

import os

from neuron_monitor.api.nodes import first_line
from neuron_tools.frozen import frozen

MOUNT_POINT = "/sys/fs/cgroup"
# Version 1 writes "no limit" as the largest multiple of a page; no machine has half of that.
UNLIMITED_BYTES = 1 << 62


@frozen
class Container:
    """What a container may use, and has used; None where it has no limit of its own.

    Attributes:
        memory_limit_bytes: Most memory.
        memory_used_bytes: Memory in use, without the cache that is given back on demand.
        swap_limit_bytes: Most swap.
        swap_used_bytes: Swap in use.
        cpu_limit: Processors, e.g. 0.5.
        user_us: Processor time in user mode since the container started.
        system_us: Processor time in the kernel.
    """

    memory_limit_bytes: int | None = None
    memory_used_bytes: int = 0
    swap_limit_bytes: int | None = None
    swap_used_bytes: int = 0
    cpu_limit: float | None = None
    user_us: int = 0
    system_us: int = 0


def read_container(mount_point: str = MOUNT_POINT) -> Container:
    """The container's limits and use; all None and 0 outside of one."""
    if os.path.exists(f"{mount_point}/memory.max") or os.path.exists(f"{mount_point}/cpu.max"):
        return _read_version_2(mount_point)
    if os.path.exists(f"{mount_point}/memory/memory.limit_in_bytes"):
        return _read_version_1(mount_point)
    return Container()


def _read_version_2(folder: str) -> Container:
    memory = _table(f"{folder}/memory.stat")
    used = _table(f"{folder}/cpu.stat")
    quota, _, period = first_line(f"{folder}/cpu.max").partition(" ")
    return Container(
        memory_limit_bytes=_limit(first_line(f"{folder}/memory.max")),
        memory_used_bytes=max(0, _number(f"{folder}/memory.current") - memory.get("inactive_file", 0)),
        swap_limit_bytes=_limit(first_line(f"{folder}/memory.swap.max")),
        swap_used_bytes=_number(f"{folder}/memory.swap.current"),
        cpu_limit=_count(quota) / _count(period) if _count(quota) and _count(period) else None,
        user_us=used.get("user_usec", 0),
        system_us=used.get("system_usec", 0),
    )


def _read_version_1(folder: str) -> Container:
    memory = _table(f"{folder}/memory/memory.stat")
    quota = first_line(f"{folder}/cpu/cpu.cfs_quota_us")
    period = _number(f"{folder}/cpu/cpu.cfs_period_us")
    held = _number(f"{folder}/memory/memory.usage_in_bytes")
    return Container(
        memory_limit_bytes=_limit(first_line(f"{folder}/memory/memory.limit_in_bytes")),
        memory_used_bytes=max(0, held - memory.get("total_inactive_file", 0)),
        cpu_limit=_count(quota) / period if _count(quota) and period else None,
        user_us=_number(f"{folder}/cpuacct/cpuacct.usage_user") // 1000,
        system_us=_number(f"{folder}/cpuacct/cpuacct.usage_sys") // 1000,
    )


def _limit(text: str) -> int | None:
    limit = _count(text)
    return limit if text.isdigit() and limit < UNLIMITED_BYTES else None


def _count(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0


def _number(path: str) -> int:
    return _count(first_line(path))


def _table(path: str) -> dict[str, int]:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return {name: int(value) for name, value in (line.split() for line in file)}
    except (OSError, ValueError):
        return {}
