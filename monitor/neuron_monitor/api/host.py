"""The host's processors and memory, and the processor time of single processes, from `/proc`.

The files stay open and are read again, which costs less than psutil's way (benchmarks/monitor.py compares).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import NamedTuple

from neuron_monitor.api import kernels
from neuron_monitor.api.container import MOUNT_POINT, Container, read_container
from neuron_monitor.api.layout import WORD_BYTES
from neuron_monitor.api.python_kernels import parse_ticks
from neuron_tools.frozen import frozen

PROCESSES = "/proc"
# pread makes room for as much as it is asked for: large for the one file that may be.
STAT_BYTES = 1 << 16
PROCESS_STAT_BYTES = 1 << 10
READS_BETWEEN_LOOKS = 30
# While most processes work, it is seldom asked who does.
READS_BETWEEN_QUESTIONS = 7
# Kinds of /proc/stat (man 5 proc_stat) as the report names them; steal and guest time are left out there.
CPU_KINDS = ("user", "nice", "system", "idle", "io_wait", "irq", "soft_irq")
_MEMORY_LINE = re.compile(rb"^(MemTotal|MemFree|MemAvailable|SwapTotal|SwapFree): *(\d+)( kB)?", re.MULTILINE)


@frozen
class HostReading:
    """Processors and memory at one moment.

    Attributes:
        cpu_ticks: Clock ticks by `CPU_KINDS` of each processor, by its number.
        context_switches: Since the host started.
        container: Limits of this container, all None outside of one.
    """

    cpu_ticks: Mapping[int, tuple[int, ...]]
    context_switches: int
    memory_total_bytes: int
    memory_used_bytes: int
    swap_total_bytes: int
    swap_used_bytes: int
    container: Container = field(default_factory=Container)


class ProcessTime(NamedTuple):
    """Processor time of one process since it started, in seconds."""

    user_s: float
    system_s: float


class Host:
    """Reads the host again and again.

    Args:
        processes: Where the proc file system is mounted, e.g. "/host/proc".
        mount_point: Where control groups are mounted.
        sees_container: Whether a container's own limits stand for the machine's.
    """

    def __init__(
        self, processes: str = PROCESSES, mount_point: str = MOUNT_POINT, *, sees_container: bool = True
    ) -> None:
        self._processes = processes
        self._mount_point = mount_point
        self._sees_container = sees_container
        self._open: dict[str, int] = {}
        self._reads_left = 0
        self._ticks_per_second = os.sysconf("SC_CLK_TCK")
        self._sees_clocks = _is_own(processes)
        self._unasked_left = 0
        self._pids: list[int] = []
        self._clocks = bytearray()
        self._times: dict[int, ProcessTime] = {}

    def read(self) -> HostReading:
        """Processors and memory now.

        Raises:
            OSError: The proc file system is not there.
        """
        cpus, switches = parse_stat(self._read("stat"))
        memory = parse_meminfo(self._read("meminfo"))
        container = self._container()
        total = memory.get("MemTotal", 0)
        used = max(0, total - memory.get("MemAvailable", memory.get("MemFree", 0)))
        swap_total = memory.get("SwapTotal", 0)
        swap_used = max(0, swap_total - memory.get("SwapFree", 0))
        if container.memory_limit_bytes is not None and container.memory_limit_bytes < total:
            total, used = container.memory_limit_bytes, container.memory_used_bytes
            swap_total = min(swap_total, container.swap_limit_bytes or 0)
            swap_used = min(swap_total, container.swap_used_bytes)
        return HostReading(cpus, switches, total, used, swap_total, swap_used, container)

    def _container(self) -> Container:
        """The container's limits; where there are none, they are looked for only now and then."""
        if not self._sees_container or self._reads_left > 0:
            self._reads_left -= 1
            return Container()
        container = read_container(self._mount_point)
        if container.memory_limit_bytes is None and container.cpu_limit is None:
            self._reads_left = READS_BETWEEN_LOOKS
        return container

    def process_times(self, pids: Iterable[int]) -> dict[int, ProcessTime]:
        """Processor time of those processes that are there; the same object as before if none has worked."""
        wanted = list(pids)
        if wanted != self._pids:
            self._follow(wanted)
        moved = self._moved(wanted)
        if not moved:
            return self._times
        names = [f"{wanted[position]}/stat" for position in moved]
        told = kernels.processor_ticks([self._open.get(name, -1) for name in names])
        found, ticks = dict(self._times), self._ticks_per_second
        for position, name, each in zip(moved, names, told):
            try:
                user, system = each or parse_ticks(self._read(name))
                found[wanted[position]] = ProcessTime(user / ticks, system / ticks)
            except (OSError, ValueError):
                found.pop(wanted[position], None)
        self._times = found
        return found

    def _moved(self, pids: list[int]) -> list[int]:
        """Positions of the processes that may have worked: all of them while most do, or cannot be asked."""
        if not self._sees_clocks or self._unasked_left > 0:
            self._unasked_left -= 1
            return [*range(len(pids))]
        moved: list[int] = kernels.moved_clocks(pids, self._clocks)
        if 2 * len(moved) > len(pids):
            self._unasked_left = READS_BETWEEN_QUESTIONS
        return moved

    def _follow(self, pids: list[int]) -> None:
        """Look at these processes from now on."""
        names = {f"{pid}/stat" for pid in pids}
        for name in self._open.keys() - names:
            if name[0].isdigit():
                os.close(self._open.pop(name))
        self._times = {}
        self._pids, self._clocks = pids, bytearray(b"\xff" * WORD_BYTES * len(pids))

    def close(self) -> None:
        """Give back all descriptors; reading opens them again."""
        while self._open:
            os.close(self._open.popitem()[1])

    def _read(self, name: str) -> bytes:
        """The text of a file below `/proc`; a process of the same pid that came later is opened anew."""
        size = PROCESS_STAT_BYTES if name[0].isdigit() else STAT_BYTES
        descriptor = self._open.get(name)
        if descriptor is not None:
            try:
                return os.pread(descriptor, size, 0)
            except OSError:
                os.close(self._open.pop(name))
        descriptor = self._open[name] = os.open(f"{self._processes}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(descriptor, size, 0)


def _is_own(processes: str) -> bool:
    """Whether processes have the same numbers there as where this one asks for their clocks."""
    try:
        return os.readlink(f"{processes}/self") == str(os.getpid())
    except OSError:
        return False


def parse_stat(text: bytes) -> tuple[dict[int, tuple[int, ...]], int]:
    """Ticks of each processor, and the context switches, from `/proc/stat`."""
    cpus: dict[int, tuple[int, ...]] = {}
    for line in text.splitlines():
        if line.startswith(b"cpu") and line[3:4].isdigit():
            name, *fields = line.split(None, len(CPU_KINDS) + 1)
            cpus[int(name[3:])] = tuple(map(int, fields[: len(CPU_KINDS)]))
        elif line.startswith(b"ctxt"):
            return cpus, int(line.split()[1])
    return cpus, 0


def parse_meminfo(text: bytes) -> dict[str, int]:
    """Bytes by name from `/proc/meminfo`, of the lines that the reading needs."""
    return {
        name.decode(): int(value) * (1024 if unit else 1) for name, value, unit in _MEMORY_LINE.findall(text)
    }


def cpu_percents(before: tuple[int, ...], after: tuple[int, ...]) -> dict[str, float]:
    """Share of each kind of time in percent; all 0 where the clock stood still or went back."""
    deltas = [max(0, new - old) for old, new in zip(before, after)]
    total = sum(deltas)
    return {name: round(100 * delta / total, 2) if total else 0.0 for name, delta in zip(CPU_KINDS, deltas)}
