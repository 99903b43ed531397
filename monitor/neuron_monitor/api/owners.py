"""Which processes use which devices on a real host: the driver's tree does not tell, `/proc` does.

A process that uses a device holds `/dev/neuronN` open, and `NEURON_RT_VISIBLE_CORES` in its environment says
which cores are its own; without it, all cores of its devices count. Counters of a core with one owner are
that process's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from neuron_monitor.api.readings import CoreReading, DeviceReading, ProcessReading

DEVICE_FILE = re.compile(r"/dev/neuron(\d+)")
RUNTIME_LIBRARY = re.compile(r"libnrt\.so\.([0-9.]+)")
LOGICAL_CORE_VARIABLES = ("NEURON_LOGICAL_NC_CONFIG", "NEURON_RT_VIRTUAL_CORE_SIZE")
# Looking at every process's descriptors is slow: new users of a device are found within this time.
SCAN_INTERVAL_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Owner:
    """One process that holds device files open.

    Attributes:
        devices: Indices of the devices whose files it holds.
        visible_cores: Logical cores it was given; None = all of its devices.
    """

    pid: int
    tag: str
    command: str
    runtime_version: str
    devices: frozenset[int]
    visible_cores: frozenset[int] | None
    logical_core_size: int | None


class Owners:
    """Finds the processes that hold device files open, at most every two seconds.

    Args:
        processes: The folder of processes, `/proc`.
    """

    def __init__(self, processes: str = "/proc") -> None:
        self._processes = processes
        self._due_ns = 0
        self._found: tuple[Owner, ...] = ()

    def find(self, now_ns: int) -> tuple[Owner, ...]:
        """The owners, as found by the last scan."""
        if now_ns >= self._due_ns:
            self._due_ns = now_ns + SCAN_INTERVAL_NS
            pids = [int(name) for name in os.listdir(self._processes) if name.isdigit()]
            self._found = tuple(filter(None, map(self._owner, sorted(pids))))
        return self._found

    def _owner(self, pid: int) -> Owner | None:
        folder = f"{self._processes}/{pid}"
        devices = _open_devices(f"{folder}/fd")
        if not devices:
            return None
        environment = _environment(f"{folder}/environ")
        size = next((environment[name] for name in LOGICAL_CORE_VARIABLES if name in environment), "")
        return Owner(
            pid=pid,
            tag=environment.get("NEURON_PROCESS_TAG", "")[:255] or str(pid),
            command=_read(f"{folder}/cmdline").replace("\0", " ").strip(),
            runtime_version=_runtime_version(f"{folder}/maps"),
            devices=devices,
            visible_cores=parse_cores(environment.get("NEURON_RT_VISIBLE_CORES", "")),
            logical_core_size=int(size) if size.isdigit() and int(size) > 0 else None,
        )


def attribute(
    owners: Sequence[Owner], devices: Sequence[DeviceReading], logical_core_size: int
) -> tuple[ProcessReading, ...]:
    """Processes with the counters of the cores that they use."""
    cores = [core for device in devices for core in device.cores]
    used = {owner.pid: _cores_of(owner, cores, logical_core_size) for owner in owners}
    users: dict[int, int] = {}
    for own in used.values():
        for core in own:
            users[core.id] = users.get(core.id, 0) + 1
    host_memory = {device.facts.index: device.host_memory for device in devices}
    return tuple(
        ProcessReading(
            pid=owner.pid,
            tag=owner.tag,
            command=owner.command,
            runtime_version=owner.runtime_version,
            logical_core_size=owner.logical_core_size or logical_core_size,
            cores={core.id: core for core in used[owner.pid]},
            host_memory=_sum(host_memory[index] for index in sorted(owner.devices) if index in host_memory),
            is_shared=any(users[core.id] > 1 for core in used[owner.pid]),
        )
        for owner in owners
    )


def parse_cores(text: str) -> frozenset[int] | None:
    """The cores of "0-3,6", or None where it names none."""
    cores: set[int] = set()
    for part in filter(None, text.replace(" ", "").split(",")):
        first, _, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            return None
        cores.update(range(int(first), int(last or first) + 1))
    return frozenset(cores) or None


def _cores_of(owner: Owner, cores: Sequence[CoreReading], logical_core_size: int) -> list[CoreReading]:
    size = owner.logical_core_size or logical_core_size
    return [
        core
        for core in cores
        if core.device in owner.devices
        and (owner.visible_cores is None or core.id // size in owner.visible_cores)
    ]


def _sum(counts: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    total: dict[str, int] = {}
    for each in counts:
        for name, value in each.items():
            total[name] = total.get(name, 0) + value
    return total


def _open_devices(folder: str) -> frozenset[int]:
    """Indices of the devices whose files a process holds; of another user's process, none can be told."""
    found = set()
    try:
        for descriptor in os.listdir(folder):
            match = DEVICE_FILE.fullmatch(os.readlink(f"{folder}/{descriptor}"))
            if match:
                found.add(int(match.group(1)))
    except OSError:
        pass
    return frozenset(found)


def _environment(path: str) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in _read(path).split("\0"))
    return {name: value for name, _, value in pairs if name}


def _runtime_version(path: str) -> str:
    """The version in the mapped runtime library's name, "NA" where the process has none."""
    match = RUNTIME_LIBRARY.search(_read(path))
    return match.group(1).rstrip(".") if match else "NA"


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
