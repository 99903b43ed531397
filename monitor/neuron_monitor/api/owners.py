"""Which processes use which devices on a real host: the driver's tree does not tell, `/proc` does.

A process that uses a device holds `/dev/neuronN` open, and `NEURON_RT_VISIBLE_CORES` in its environment says
which cores are its own; without it, all cores of its devices count. Counters of a core with one owner are
that process's.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from operator import is_
from typing import NamedTuple

from neuron_monitor.api import kernels
from neuron_monitor.api.readings import CoreReading, DeviceReading, ProcessReading, are_same
from neuron_tools.frozen import frozen

DEVICE_PREFIX = "/dev/neuron"
DEVICE_FILE = re.compile(rf"{DEVICE_PREFIX}[0-9]+")
RUNTIME_LIBRARY = re.compile(r"libnrt\.so\.([0-9.]+)")
LOGICAL_CORE_VARIABLES = ("NEURON_LOGICAL_NC_CONFIG", "NEURON_RT_VIRTUAL_CORE_SIZE")
# Looking at every process's descriptors is slow: new users of a device are found within this time.
SCAN_INTERVAL_NS = 2_000_000_000
LOOK_INTERVAL_NS = 10_000_000_000
# What a process was started with does not change; it may load the runtime, or another program, later.
START_INTERVAL_NS = 60_000_000_000
# A process that holds no device is looked at in one of so many scans whatever is told of it: it may have
# opened one and closed another file. The second holds where the kernel does not tell how many are open.
SCANS_BETWEEN_LOOKS = 30
SCANS_BETWEEN_BLIND_LOOKS = 5
_NO_RUNTIME = "NA"


@frozen
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


class _Holding(NamedTuple):
    """An owner as it was looked at in full, and the descriptors by which it holds its devices."""

    owner: Owner
    links: dict[str, str]
    due_ns: int
    start_due_ns: int

    def is_as_it_was(self, links: Mapping[str, str], now_ns: int) -> bool:
        """Whether it need not be looked at in full again, given the devices that it holds now."""
        has_runtime = self.owner.runtime_version != _NO_RUNTIME
        return links == self.links and has_runtime and now_ns < self.start_due_ns


class _Bystanders:
    """Processes that hold no device, of which only those are looked at that may hold one by now.

    Linux tells since 6.2 how many files a process has open, at a fiftieth of what it costs to look at each of
    them: whoever opens a device has others open then. Before, new processes are looked at in each scan.

    Args:
        processes: The folder of processes.
    """

    def __init__(self, processes: str) -> None:
        self._processes = processes
        self._scan = 0
        self._counts: dict[int, int] = {}
        self._since: dict[int, int] = {}

    def due(self, pids: Sequence[int]) -> set[int]:
        """Those to look at in this scan."""
        counts = dict(zip(pids, kernels.descriptor_counts(self._processes, pids)))
        last, self._counts, self._scan = self._counts, counts, self._scan + 1
        if any(count > 0 for count in counts.values()):
            self._since = {}
            open_ones = [(pid, count) for pid, count in counts.items() if count > 0]
            return {pid for pid, count in open_ones if count != last.get(pid) or self._is_in_turn(pid)}
        since, scan = self._since, self._scan
        self._since = {pid: since.get(pid, scan) for pid, count in counts.items() if count == 0}
        return {
            pid
            for pid, first in self._since.items()
            if scan - first < SCANS_BETWEEN_BLIND_LOOKS or self._is_in_turn(pid, SCANS_BETWEEN_BLIND_LOOKS)
        }

    def _is_in_turn(self, pid: int, scans: int = SCANS_BETWEEN_LOOKS) -> bool:
        """Whether a process is looked at anyway: not all in the same scan."""
        return (self._scan + pid) % scans == 0


class Owners:
    """Finds the processes that hold device files open, at most every two seconds.

    The devices of one that was found are looked at again after ten seconds, or as soon as it lets one go; its
    environment and runtime after a minute, or when the devices are others. A process that opens its first
    device is found in two seconds if it is new or has another number of files open than before, else in a
    minute; in ten seconds where the kernel does not tell that number.

    Args:
        processes: The folder of processes, `/proc`.
    """

    def __init__(self, processes: str = "/proc") -> None:
        self._processes = processes
        self._due_ns = 0
        self._found: tuple[Owner, ...] = ()
        self._held: dict[int, _Holding] = {}
        self._bystanders = _Bystanders(processes)

    def find(self, now_ns: int) -> tuple[Owner, ...]:
        """The owners, as found by the last scan."""
        if now_ns >= self._due_ns:
            self._due_ns = now_ns + SCAN_INTERVAL_NS
            with suppress(OSError):  # e.g. too many open files: the owners stay as they were
                pids = sorted(int(name) for name in os.listdir(self._processes) if name.isdigit())
                lasting = self._lasting(now_ns)
                looked_at = self._bystanders.due([pid for pid in pids if pid not in self._held])
                looked_at |= self._held.keys()
                held = [
                    (pid, lasting.get(pid) or self._holding(pid, now_ns)) for pid in pids if pid in looked_at
                ]
                self._held = {pid: each for pid, each in held if each is not None}
                found = tuple(each.owner for each in self._held.values())
                # The same object as long as they are the same: whoever compares need not look.
                self._found = self._found if found == self._found else found
        return self._found

    def _lasting(self, now_ns: int) -> dict[int, _Holding]:
        """Owners that are not due and still hold the same files open by the same descriptors."""
        each = [(pid, holding) for pid, holding in self._held.items() if now_ns < holding.due_ns]
        return dict([each[at] for at in kernels.leading_on([holding.links for _, holding in each])])

    def _holding(self, pid: int, now_ns: int) -> _Holding | None:
        known = self._held.get(pid)
        links = _device_links(f"{self._processes}/{pid}/fd")
        if not links:
            return None
        due_ns = now_ns + LOOK_INTERVAL_NS
        if known is not None and known.is_as_it_was(links, now_ns):
            return known._replace(due_ns=due_ns)
        return _Holding(self._owner(pid, links), links, due_ns, now_ns + START_INTERVAL_NS)

    def _owner(self, pid: int, links: Mapping[str, str]) -> Owner:
        folder = f"{self._processes}/{pid}"
        environment = _environment(f"{folder}/environ")
        size = next((environment[name] for name in LOGICAL_CORE_VARIABLES if name in environment), "")
        return Owner(
            pid=pid,
            tag=environment.get("NEURON_PROCESS_TAG", "")[:255] or str(pid),
            command=_read(f"{folder}/cmdline").replace("\0", " ").strip(),
            runtime_version=_runtime_version(f"{folder}/maps"),
            devices=frozenset(int(target.removeprefix(DEVICE_PREFIX)) for target in links.values()),
            visible_cores=parse_cores(environment.get("NEURON_RT_VISIBLE_CORES", "")),
            logical_core_size=int(size) if size.isdigit() and int(size) > 0 else None,
        )


class _Share(NamedTuple):
    """What of the host is one owner's: its cores by id, and whether others use some of them too."""

    owner: Owner
    core_ids: tuple[int, ...]
    devices: tuple[int, ...]
    is_shared: bool


class Attribution:
    """Gives owners the counters of the cores that they use, reading after reading."""

    def __init__(self) -> None:
        self._shares_of: tuple[Sequence[Owner], int, list[int], list[int]] = ((), 0, [], [])
        self._shares: list[_Share] = []
        self._owners: Sequence[Owner] = ()
        self._devices: Sequence[DeviceReading] = ()
        self._processes: tuple[ProcessReading, ...] = ()

    def processes(
        self, owners: Sequence[Owner], devices: Sequence[DeviceReading], logical_core_size: int
    ) -> tuple[ProcessReading, ...]:
        """The owners as processes.

        A process whose cores stand still is the same object as before: whoever compares need not look. So are
        all of them together where no device changed.

        Args:
            owners: The same object as long as they are the same.
        """
        if owners is self._shares_of[0] and are_same(devices, self._devices):
            return self._processes
        cores = {core.id: core for device in devices for core in device.cores}
        if owners is self._owners and logical_core_size == self._shares_of[1] and self._are_alike(devices):
            self._devices = devices
            self._processes = kernels.with_cores(self._processes, cores)
            return self._processes
        shares_of = owners, logical_core_size, list(cores), [len(device.cores) for device in devices]
        if owners is not self._shares_of[0] or shares_of[1:] != self._shares_of[1:]:
            self._shares_of, self._shares = shares_of, _shares(owners, cores.values(), logical_core_size)
        memory = {device.facts.index: device.host_memory for device in devices}
        known = {process.pid: process for process in self._processes} if owners is self._owners else {}
        self._devices, self._owners = devices, owners
        self._processes = tuple(
            [
                _process(share, cores, memory, logical_core_size, known.get(share.owner.pid))
                for share in self._shares
            ]
        )
        return self._processes

    def _are_alike(self, devices: Sequence[DeviceReading]) -> bool:
        """Whether devices have the same cores as before, and the host's memory for them is the same."""
        return len(devices) == len(self._devices) and all(map(_have_same_cores, devices, self._devices))


def _have_same_cores(now: DeviceReading, last: DeviceReading) -> bool:
    if now is last:
        return True
    is_held = now.host_memory is last.host_memory
    return is_held and [core.id for core in now.cores] == [core.id for core in last.cores]


def _shares(owners: Sequence[Owner], cores: Iterable[CoreReading], size: int) -> list[_Share]:
    used = {owner.pid: _cores_of(owner, cores, size) for owner in owners}
    users = Counter(core for own in used.values() for core in own)
    return [
        _Share(
            owner,
            used[owner.pid],
            tuple(sorted(owner.devices)),
            any(users[core] > 1 for core in used[owner.pid]),
        )
        for owner in owners
    ]


def _process(
    share: _Share,
    cores: Mapping[int, CoreReading],
    memory: Mapping[int, Mapping[str, int]],
    logical_core_size: int,
    last: ProcessReading | None,
) -> ProcessReading:
    owner = share.owner
    used = {core: cores[core] for core in share.core_ids}
    held = _sum([memory[index] for index in share.devices if index in memory])
    if last is not None and held == last.host_memory and list(used) == list(last.cores):
        is_still = all(map(is_, used.values(), last.cores.values()))
        if is_still:
            return last
    return ProcessReading(
        pid=owner.pid,
        tag=owner.tag,
        command=owner.command,
        runtime_version=owner.runtime_version,
        logical_core_size=owner.logical_core_size or logical_core_size,
        cores=used,
        host_memory=held,
        is_shared=share.is_shared,
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


def _cores_of(owner: Owner, cores: Iterable[CoreReading], logical_core_size: int) -> tuple[int, ...]:
    size = owner.logical_core_size or logical_core_size
    return tuple(
        core.id
        for core in cores
        if core.device in owner.devices
        and (owner.visible_cores is None or core.id // size in owner.visible_cores)
    )


def _sum(counts: Sequence[Mapping[str, int]]) -> Mapping[str, int]:
    if len(counts) == 1:
        return counts[0]
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total


def _device_links(folder: str) -> dict[str, str]:
    """The devices whose files a process holds, by descriptor; of another user's process, none can be told."""
    found = {}
    try:
        for descriptor in os.listdir(folder):
            link = f"{folder}/{descriptor}"
            target = os.readlink(link)
            if target.startswith(DEVICE_PREFIX) and DEVICE_FILE.fullmatch(target):
                found[link] = target
    except OSError:
        pass
    return found


def _environment(path: str) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in _read(path).split("\0"))
    return {name: value for name, _, value in pairs if name}


def _runtime_version(path: str) -> str:
    """The version in the mapped runtime library's name, "NA" where the process has none."""
    match = RUNTIME_LIBRARY.search(_read(path))
    return match.group(1).rstrip(".") if match else _NO_RUNTIME


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
