"""The tree of all devices of a host: found, followed while devices come and go, and read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import orjson

from neuron_monitor.api import kernels, layout
from neuron_monitor.api.device import Carried, DeviceNodes, Outcome, Plan, carry_out
from neuron_monitor.api.guard import BlockedError, Guard
from neuron_monitor.api.nodes import Fault, Part, describe_os_error, raise_descriptor_limit, read_text
from neuron_monitor.api.owners import Attribution, Owners
from neuron_monitor.api.published import PublishedProcesses
from neuron_monitor.api.readings import CoreReading, DeviceReading, ProcessReading, are_same
from neuron_monitor.api.records import ROW_BYTES, Arrangement, Records, Rows, Told, TreeReading
from neuron_monitor.api.root import DEVICE_NAME, list_indices

LIST_INTERVAL_NS = 500_000_000
DRIVER_FILE = "driver.json"
DEFAULT_TIMEOUT_S = 1.0
# Logical cores where neither the process nor the simulated driver says otherwise: the runtime joins two
# physical cores from the third generation on (aws-neuron-sdk, "Logical NeuronCore configuration").
PAIRED_ARCHITECTURES = ("NDv3", "NDv4")
# Physical cores that the runtime can join; anything else is garbage (the same source).
LOGICAL_SIZES = ("1", "2", "4", "8")
LOGICAL_SIZE_VARIABLE = "NEURON_LOGICAL_NC_CONFIG"


class DeviceTree:
    """Reads a tree of Neuron devices again and again.

    Args:
        root: Folder that holds `neuron0`, `neuron1`, ...; it may come and go.
        clock: Monotonic nanoseconds.
        timeout_s: How long one device may take; a driver that does not answer is left alone until it does.
        owners: Finds the processes of a real host.
        with_counts: Whether counters are read; without, devices and processes are only listed.
    """

    def __init__(
        self,
        root: str,
        *,
        clock: Callable[[], int] = time.monotonic_ns,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        owners: Owners | None = None,
        with_counts: bool = True,
    ) -> None:
        self.root = root
        self._clock = clock
        self._with_counts = with_counts
        self._opening: Guard[int, DeviceNodes] = Guard(timeout_s, clock)
        self._reading: Guard[int, DeviceReading] = Guard(timeout_s, clock)
        self._reader = kernels.reader()
        self._timeout_s = timeout_s
        self._owners = owners or Owners()
        self._published = PublishedProcesses(f"{root}/processes")
        self._devices: dict[int, DeviceNodes] = {}
        self._latest: dict[int, DeviceReading] = {}
        self._faults: dict[int, list[Fault]] = {}
        self._published_last: tuple[ProcessReading, ...] = ()
        self._told: dict[int, CoreReading] = {}
        self._told_last: Mapping[int, CoreReading] | None = None
        self._attribution = Attribution()
        self._rows: Rows | None = None
        self._steady: dict[int, Plan] = {}
        self._steady_parts: list[Part] = []
        self._steady_until_ns = self._told_until_ns = self._read_ns = 0
        self._is_as_before = self._is_listed = False
        self._names: list[str] = []
        self._there: tuple[DeviceReading, ...] = ()
        self._device_faults: list[Fault] = []
        self._row_tables: list[bytearray] = []
        self._cores_per_device = 0
        self._size = 1
        self._list_due_ns = 0
        self._driver: dict[str, object] = {}
        self._driver_faults: list[Fault] = []
        raise_descriptor_limit()

    def read(self) -> TreeReading:
        """Everything as it is now; what cannot be read is among the faults, and keeps its last value."""
        now_ns = self._clock()
        if now_ns >= self._list_due_ns or not self._devices:
            self._list_due_ns = now_ns + LIST_INTERVAL_NS
            self._list_devices()
        published = self._published.read(now_ns) if self._driver else ()
        if published is not self._published_last:
            self._published_last, self._told = published, cores_told(published)
        self._read_devices(now_ns, self._told)
        devices = self._present()
        size = self._logical_core_size(devices, published)
        return TreeReading(
            taken_ns=now_ns,
            root=self.root,
            records=Told(devices, published) if self._driver else self._counted(devices, size, now_ns),
            faults=(*self._driver_faults, *self._device_faults, *self._published.faults),
            logical_core_size=size,
            instance_type=str(self._driver.get("instance_type") or ""),
            is_simulated=bool(self._driver),
        )

    def _present(self) -> tuple[DeviceReading, ...]:
        """The devices by rising index: the same object as long as they are the same."""
        if not self._is_as_before:
            found = [self._latest[index] for index in sorted(self._devices) if index in self._latest]
            self._there = tuple(found)
            self._device_faults = [fault for index in sorted(self._faults) for fault in self._faults[index]]
            rows = [self._devices[device.facts.index].rows for device in found]
            are_whole = bool(found) and all(map(_fills, rows, found))
            self._row_tables = [each for each in rows if each is not None] if are_whole else []
            self._is_as_before = True
        return self._there

    def close(self) -> None:
        """Give back all descriptors."""
        for index in list(self._devices):
            self._forget(index)
        self._published.close()

    def _list_devices(self) -> None:
        names = _names_in(self.root)
        if names == self._names and self._is_listed and DRIVER_FILE not in names:
            return  # Nothing came or went, and all that is there is open.
        self._read_driver(f"{self.root}/{DRIVER_FILE}")
        is_made = not self._driver or os.path.isdir(self._published.folder)
        # A simulated driver moves its folder of processes in place when all devices stand there.
        present = list_indices(self.root, DEVICE_NAME) if is_made else []
        for index in set(self._devices) - set(present):
            self._forget(index)
        for index in set(self._faults) - set(present):
            del self._faults[index]
            self._is_as_before = False
        for index in present:
            if index not in self._devices:
                self._open_device(index)
        self._names, self._is_listed = names, not self._driver and len(self._devices) == len(present)

    def _read_driver(self, path: str) -> None:
        """What the simulated driver says of itself; {} on a real one, and the last where it is damaged."""
        self._driver_faults = []
        try:
            told = orjson.loads(read_text(path))
            if not isinstance(told, dict):
                raise ValueError("no JSON object")
            self._driver = told
        except FileNotFoundError:
            self._driver = {}
        except (OSError, ValueError) as error:
            self._driver_faults = [_fault(path, error)]

    def _open_device(self, index: int) -> None:
        make = partial(DeviceNodes, self.root, index, with_counts=self._with_counts)
        opened = self._opening.run({index: make})[index]
        self._is_as_before = False
        self._steady = {}
        if isinstance(opened, Exception):
            self._faults[index] = [_fault(f"{self.root}/neuron{index}", opened)]
        else:
            self._devices[index] = opened

    def _read_devices(self, now_ns: int, told: Mapping[int, CoreReading]) -> None:
        if not self._driver:
            self._read_real(now_ns)
            return
        all_told = told is self._told_last and len(self._latest) == len(self._devices)
        if all_told and now_ns < self._told_until_ns:
            return
        self._told_last = told
        per_device = self._most_cores()
        reads: dict[int, Callable[[], DeviceReading]] = {
            index: partial(nodes.read, now_ns, index * per_device, told)
            for index, nodes in sorted(self._devices.items())
            if not all_told or nodes.is_due(now_ns)
        }
        # Files of a simulated driver are in memory: no driver can hang, and no thread is needed.
        for index, outcome in _call(reads).items():
            self._take(index, outcome)
        is_later = not any(nodes.is_due(now_ns) for nodes in self._devices.values())
        self._told_until_ns = self._next_due_ns() if is_later else 0

    def _most_cores(self) -> int:
        """Cores of each device: a host's are alike, and one that is not whole yet leaves numbers alone."""
        return max([nodes.facts.core_count for nodes in self._devices.values()], default=0)

    def _next_due_ns(self) -> int:
        """When more of some device is read than what is always read."""
        return min([nodes.due_ns for nodes in self._devices.values()], default=0)

    def _read_real(self, now_ns: int) -> None:
        """Read a real driver's devices: all at once those whose folders need no full look.

        While one of them hangs each is read by itself: only then it is known which.
        """
        is_careful = self._reading.is_blocked or kernels.is_reading(self._reader)
        if self._steady and now_ns < self._steady_until_ns and not is_careful:
            self._read_steady(now_ns)
            self._read_ns = now_ns
            return
        per_device = self._most_cores()
        is_careful = is_careful or per_device != self._cores_per_device
        self._cores_per_device = per_device
        plans: dict[int, Plan] = {}
        alone = []
        for index in sorted(self._devices):
            plan = None if is_careful else self._devices[index].plan(now_ns)
            if plan is None:
                alone.append(index)
            else:
                plans[index] = plan
        self._read_alone(alone, now_ns)
        together = carry_out(list(plans.values()), self._read_within) if plans else None
        if together:
            self._take_together(now_ns, plans, together)
        elif together is not None:
            self._read_alone(plans, now_ns)
        self._steady_until_ns = self._next_due_ns()
        # Something must be read before more is due. What was noted holds until a device is read by itself.
        if not self._steady and self._steady_until_ns - now_ns > now_ns - self._read_ns:
            self._plan_steady(now_ns)
        self._read_ns = now_ns

    def _plan_steady(self, now_ns: int) -> None:
        """Note what is read until more of some device is due, if all can be read together."""
        if now_ns >= self._steady_until_ns or len(self._latest) != len(self._devices):
            return
        plans = {index: self._devices[index].plan(now_ns) for index in sorted(self._devices)}
        self._steady = {index: plan for index, plan in plans.items() if plan is not None and plan.is_progress}
        if len(self._steady) < len(plans):
            self._steady = {}
        self._steady_parts = [plan.parts[0] for plan in self._steady.values()]

    def _read_steady(self, now_ns: int) -> None:
        """Read what is always read of all devices."""
        outcomes = kernels.refresh_within(self._reader, self._steady_parts, self._timeout_s, True)
        if outcomes is not None and any(others for _, others in outcomes):
            carried = [Carried((outcome,), None) for outcome in outcomes]
            self._take_together(now_ns, self._steady, carried)

    def _read_within(self, parts: list[Part]) -> Sequence[Outcome] | None:
        """Read nodes of several devices; None where one of these hangs."""
        found: Sequence[Outcome] | None = kernels.refresh_within(self._reader, parts, self._timeout_s, False)
        return found

    def _read_alone(self, indices: Iterable[int], now_ns: int) -> None:
        """Read each device by itself."""
        first = self._cores_per_device
        reads: dict[int, Callable[[], DeviceReading]] = {
            index: partial(self._devices[index].read, now_ns, index * first, in_outline=True)
            for index in indices
        }
        for index, outcome in self._reading.run(reads).items() if reads else ():
            self._take(index, outcome)

    def _take_together(self, now_ns: int, plans: Mapping[int, Plan], together: Sequence[Carried]) -> None:
        """Take devices that were read together; what must be read in addition is read together too."""
        further = {}
        for (index, plan), carried in zip(plans.items(), together):
            if plan.is_progress and not carried.outcomes[0][1]:
                continue
            nodes = self._devices[index]
            reading, part = nodes.take(now_ns, plan, carried)
            if part is not None:
                further[index] = part
            if reading is not None and reading is not self._latest.get(index):
                self._latest[index], self._is_as_before = reading, False
            if reading is not None or carried.outcomes[0][1]:
                self._note_faults(index)
        if further:
            self._read_further(further)

    def _read_further(self, parts: Mapping[int, Part]) -> None:
        outcomes = self._read_within(list(parts.values()))
        for index, (_, others) in zip(parts, outcomes or ()):
            self._devices[index].take_others(others)
            self._note_faults(index)

    def _note_faults(self, index: int) -> None:
        faults = self._devices[index].faults()
        if faults or self._faults.get(index):
            self._is_as_before = False
        self._faults[index] = faults

    def _take(self, index: int, outcome: DeviceReading | Exception) -> None:
        nodes = self._devices[index]
        self._is_as_before = False
        self._steady = {}
        if isinstance(outcome, DeviceReading):
            self._latest[index] = outcome
            self._faults[index] = nodes.faults()
        elif isinstance(outcome, BlockedError):
            self._faults[index] = [_fault(nodes.path, outcome)]
        elif isinstance(outcome, OSError):
            self._forget(index)
            self._faults[index] = [_fault(nodes.path, outcome)]
            self._list_due_ns = 0
        else:
            raise outcome

    def _forget(self, index: int) -> None:
        self._is_as_before = self._is_listed = False
        self._steady = {}
        self._devices.pop(index).close()
        self._latest.pop(index, None)
        self._faults.pop(index, None)

    def _counted(self, devices: tuple[DeviceReading, ...], size: int, now_ns: int) -> Records:
        """What a real host counted: rows where all devices have them, else records."""
        if not self._row_tables:
            self._rows = None
            devices = tuple([self._devices[device.facts.index].filled(device) for device in devices])
            return Told(devices, self._attribute(devices, size, now_ns))
        words = b"".join(self._row_tables)
        processes = self._attribute(devices, size, now_ns)
        last = self._rows
        if last is None or not last.arrangement.is_of(devices, processes):
            earlier = None if last is None else last.arrangement
            self._rows = Rows(Arrangement(devices, processes, earlier), words)
        elif words != last.words:
            self._rows = Rows(last.arrangement, words)
        return self._rows or Told((), ())

    def _attribute(
        self, devices: tuple[DeviceReading, ...], size: int, now_ns: int
    ) -> tuple[ProcessReading, ...]:
        return self._attribution.processes(self._owners.find(now_ns), devices, size) if devices else ()

    def _logical_core_size(
        self, devices: tuple[DeviceReading, ...], published: tuple[ProcessReading, ...]
    ) -> int:
        """What the simulated processes use, if they agree; else what the driver or the environment says."""
        used = {process.logical_core_size for process in published}
        if len(used) == 1:
            return used.pop()
        if self._rows is None or not are_same(devices, self._rows.arrangement.devices):
            self._size = self._told_size(devices)
        return self._size

    def _told_size(self, devices: tuple[DeviceReading, ...]) -> int:
        told = str(self._driver.get("logical_core_size") or os.environ.get(LOGICAL_SIZE_VARIABLE))
        if told in LOGICAL_SIZES:
            return int(told)
        is_paired = any(device.facts.architecture in PAIRED_ARCHITECTURES for device in devices)
        return 2 if is_paired else 1


def _names_in(folder: str) -> list[str]:
    """The entries of a folder as the system lists them; [] where there is none."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _fills(rows: bytearray | None, device: DeviceReading) -> bool:
    """Whether rows are those of all cores of a device; not while a device that hangs is opened anew."""
    return rows is not None and len(rows) == ROW_BYTES * len(device.cores)


def _call(
    reads: Mapping[int, Callable[[], DeviceReading]],
) -> dict[int, DeviceReading | Exception]:
    """What each call returns, or the error that it raises."""
    outcomes: dict[int, DeviceReading | Exception] = {}
    for index, read in reads.items():
        try:
            outcomes[index] = read()
        except OSError as error:
            outcomes[index] = error
    return outcomes


def cores_told(processes: Sequence[ProcessReading]) -> dict[int, CoreReading]:
    """Counters of the cores that simulated processes use, by physical core id: sums of what these told."""
    told: dict[int, CoreReading] = {}
    for process in processes:
        if told.keys().isdisjoint(process.cores):
            told.update(process.cores)
            continue
        for core_id, core in process.cores.items():
            known = told.get(core_id)
            told[core_id] = core if known is None else _sum(known, core)
    return told


def _sum(one: CoreReading, other: CoreReading) -> CoreReading:
    """Two processes' counters of one core; of the clock, the time that passed for either."""
    counts = list(map(int.__add__, one.counts, other.counts))
    clock = "elapsed_ns"
    counts[layout.COLUMN_OF[clock]] = max(one.count(clock), other.count(clock))
    return CoreReading(one.id, one.device, one.core, layout.packed(counts), one.is_clocked)


def _fault(path: str, error: Exception) -> Fault:
    return Fault(path, describe_os_error(error) if isinstance(error, OSError) else str(error))
