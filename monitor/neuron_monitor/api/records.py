"""Records of devices and processes: as processes told them, or made when they are asked for.

A real host counts for every core at every look, and a report of it needs differences of counters, not
records. So its counters stay rows of words; records are made of them only for what looks at single cores.
"""

from __future__ import annotations

from operator import is_
from typing import Protocol

from neuron_monitor.api import kernels, layout
from neuron_monitor.api.layout import WORD_BYTES
from neuron_monitor.api.nodes import Fault
from neuron_monitor.api.readings import CoreReading, DeviceReading, ProcessReading, are_same
from neuron_tools.frozen import frozen

ROW_WIDTH = len(layout.CORE_COLUMNS)
ROW_BYTES = WORD_BYTES * ROW_WIDTH
Devices = tuple[DeviceReading, ...]
Processes = tuple[ProcessReading, ...]


class Records(Protocol):
    """Devices and processes at one moment."""

    @property
    def devices(self) -> Devices:
        """All devices, by rising index."""

    @property
    def processes(self) -> Processes:
        """All processes."""

    @property
    def outlines(self) -> tuple[Devices, Processes]:
        """The same as far as it does not hang on counters: those of an earlier moment may stand there."""


@frozen
class Told:
    """Records that are made already."""

    devices: Devices
    processes: Processes

    @property
    def outlines(self) -> tuple[Devices, Processes]:
        """The records."""
        return self.devices, self.processes


class Arrangement:
    """What devices and processes are beside what their cores count.

    Args:
        devices: As they were looked at last; their cores' counters may be older.
        processes: The same.
        earlier: The arrangement before, whose records stay the same objects where they are equal.

    Attributes:
        core_ids: Of the rows.
        row_of: The row of each core, by its id.
        sizes: Rows of each device.
        cores: Of each process the ids of its cores, and their rows.
        is_plain: Whether the rows say all about the processes: no core has a clock of its own.
    """

    def __init__(self, devices: Devices, processes: Processes, earlier: Arrangement | None = None) -> None:
        self.devices = devices
        self.processes = processes
        self.core_ids = tuple([core.id for device in devices for core in device.cores])
        self.sizes = tuple([len(device.cores) for device in devices])
        self.row_of = {core_id: row for row, core_id in enumerate(self.core_ids)}
        row = self.row_of.__getitem__
        self.cores = [(tuple(each.cores), tuple(map(row, each.cores))) for each in processes]
        is_clocked = any(core.is_clocked for device in devices for core in device.cores)
        self.is_plain = not is_clocked and all(process.is_timed for process in processes)
        self._last: tuple[bytes, Devices, Processes] = (b"", _with_cores_of(devices, earlier), processes)

    def is_of(self, devices: Devices, processes: Processes) -> bool:
        """Whether it is still that of these."""
        return processes is self.processes and are_same(devices, self.devices)

    def records(self, words: bytes) -> tuple[Devices, Processes]:
        """Records with the counters of some moment."""
        last, devices, processes = self._last
        if words != last:
            devices = _counted(devices, words)
            cores = {core.id: core for device in devices for core in device.cores}
            now = kernels.with_cores(processes, cores)
            processes = processes if all(map(is_, now, processes)) else now
            self._last = words, devices, processes
        return devices, processes

    def last_cores(self) -> dict[int, DeviceReading]:
        """The devices of which records were made last, by index."""
        return {device.facts.index: device for device in self._last[1]}


@frozen
class Rows:
    """Counters of a real host's cores at one moment: records are made of them when they are asked for.

    Attributes:
        words: A row of `ROW_WIDTH` words for each core, device by device.
    """

    arrangement: Arrangement
    words: bytes

    @property
    def devices(self) -> Devices:
        """All devices, by rising index."""
        return self.arrangement.records(self.words)[0]

    @property
    def processes(self) -> Processes:
        """All processes."""
        return self.arrangement.records(self.words)[1]

    @property
    def outlines(self) -> tuple[Devices, Processes]:
        """What the counters belong to."""
        return self.arrangement.devices, self.arrangement.processes


@frozen
class TreeReading:
    """Everything that was read from a tree.

    Attributes:
        taken_ns: Monotonic time of the reading.
        records: Its devices and processes.
        logical_core_size: Of the instance.
        instance_type: As the simulated driver tells it; "" on a real one.
        is_simulated: Whether the tree is of the simulated driver.
    """

    taken_ns: int
    root: str
    records: Records
    faults: tuple[Fault, ...]
    logical_core_size: int = 1
    instance_type: str = ""
    is_simulated: bool = False

    @property
    def devices(self) -> Devices:
        """All devices, by rising index."""
        return self.records.devices

    @property
    def processes(self) -> Processes:
        """The processes that use them."""
        return self.records.processes

    @property
    def counted(self) -> object:
        """The same object as long as no process counted, and none came or went."""
        return self.records if isinstance(self.records, Rows) else self.records.processes

    def cores_by_id(self) -> dict[int, CoreReading]:
        """The physical cores of all devices."""
        return {core.id: core for device in self.devices for core in device.cores}

    def core_count(self) -> int:
        """Physical NeuronCores of all devices."""
        return sum(device.facts.core_count for device in self.records.outlines[0])


def plain_pair(before: Records, after: Records) -> tuple[Rows, Rows] | None:
    """Two moments of the same cores whose rows say all that there is; None if they are not."""
    if not isinstance(before, Rows) or not isinstance(after, Rows) or not after.arrangement.is_plain:
        return None
    return (before, after) if before.arrangement is after.arrangement else None


def _counted(devices: Devices, words: bytes) -> Devices:
    """Devices with the counters of rows; the same objects where these are the same."""
    found, at = [], 0
    for device in devices:
        stop = at + ROW_BYTES * len(device.cores)
        cores = kernels.followed(device.cores, words[at:stop])
        found.append(device if cores is device.cores else device._replace(cores=cores))
        at = stop
    return devices if all(map(is_, found, devices)) else tuple(found)


def _with_cores_of(devices: Devices, earlier: Arrangement | None) -> Devices:
    """Devices with the records of cores that were made last, where they are the same cores."""
    if earlier is None:
        return devices
    known = earlier.last_cores()
    return tuple([_with_cores(device, known.get(device.facts.index)) for device in devices])


def _with_cores(device: DeviceReading, last: DeviceReading | None) -> DeviceReading:
    if last is None or len(last.cores) != len(device.cores):
        return device
    are_same = all(
        now.id == was.id and now.is_clocked == was.is_clocked for now, was in zip(device.cores, last.cores)
    )
    made = device._replace(cores=last.cores) if are_same else device
    return last if made == last else made
