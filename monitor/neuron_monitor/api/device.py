"""One device's nodes: what they are, and reading them with as few system calls as the changes allow."""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from operator import is_
from types import MappingProxyType
from typing import NamedTuple

from neuron_monitor.api import kernels, layout
from neuron_monitor.api.nodes import Fault, NodeTable, Part, TextNode, describe_os_error, read_text
from neuron_monitor.api.readings import CoreReading, DeviceFacts, DeviceReading, Power, are_same
from neuron_monitor.api.root import CORE_NAME, DEVICE_NAME, list_indices
from neuron_tools.device.driver.modified import lasting_mark

# What seldom changes is read this often: errors, loads, host memory and power.
QUIET_INTERVAL_NS = 2_000_000_000
# Of a core whose executions succeed, errors and loads are read only every third time.
TURNS_OF_WORKING_CORES = 3
# Memory by category is read when its total changed; otherwise, where there is a total, only this often.
MEMORY_INTERVAL_NS = 12_000_000_000
QUIET_PHASES = 4
LOOK_PHASES = 16
# A full look at a device's folder: at each of its nodes, for sysfs does not always tell of changes.
LOOK_INTERVAL_NS = 30_000_000_000
# How often folders are looked at for cores that came, went, or were made anew, and memory for its total.
FOLDER_INTERVAL_NS = 900_000_000
DEVICE_COLUMNS = (
    *((name, f"stats/hardware/{name}", layout.MOST_EVENTS) for name in layout.ECC_NODES),
    *(
        (name, f"stats/memory_usage/host_mem/{name}", layout.MOST_BYTES)
        for name in layout.HOST_MEMORY_CATEGORIES
    ),
)
# More cores than any device has; beyond, the node that says so holds garbage.
MOST_CORES = 1 << 10
_ECC_COUNT = len(layout.ECC_NODES)
_PLAIN = ("/total", "")
PCI_DRIVER = "/sys/bus/pci/drivers/neuron-driver"
INDEX = re.compile(r"\s*[0-9]{1,4}\s*")
PCI_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


_WIDTH = len(layout.CORE_COLUMNS)
_TOTAL = layout.COLUMN_OF["device_memory"]
_SUCCESS = layout.COLUMN_OF["success"]
_PROGRESS = frozenset(layout.COLUMN_OF[name] for name in layout.PROGRESS_COLUMNS)
_ACTIVITY = frozenset(layout.COLUMN_OF[name] for name in layout.ACTIVITY_COLUMNS)
_MEMORY = frozenset(range(_WIDTH)[layout.MEMORY_SLICE])


class Folder(NamedTuple):
    """A device's folder as it was when it was looked at in full."""

    path: str
    inode: int
    modified_ns: int

    def is_as_it_was(self) -> bool:
        """Whether nothing tells that entries came or went."""
        try:
            entry = os.stat(self.path)
        except OSError:
            return False
        return entry.st_ino == self.inode and entry.st_mtime_ns == self.modified_ns


class Plan(NamedTuple):
    """What is read of a device at one look, given that its folder is as it was.

    Attributes:
        parts: Nodes of its cores, and the device's own where they are due.
        folder: None where it is not looked at.
        power: None where it is not due. If it is open, the last of the parts reads it.
    """

    parts: tuple[Part, ...]
    folder: Folder | None = None
    power: TextNode | None = None

    @property
    def is_progress(self) -> bool:
        """Whether nothing else is read than what is always read."""
        return self.folder is None and self.power is None


Outcome = tuple[list[int], list[tuple[int, bytes | None]]]
"""Of one part: what changed, and what the caller must look at."""


class Carried(NamedTuple):
    """What was read of a device as a plan says."""

    outcomes: Sequence[Outcome]
    power: bytes | OSError | None


Read = Callable[[list[Part]], Sequence[Outcome] | None]
"""Reads nodes as `kernels.refresh` does; None where the driver does not answer."""


def carry_out(plans: Sequence[Plan], read: Read) -> list[Carried] | None:
    """Read devices as their plans say, all at once.

    Returns:
        [] where the folder of one is another than it was, None where the driver does not answer.
    """
    if not all(plan.folder.is_as_it_was() for plan in plans if plan.folder is not None):
        return []
    outcomes = read([part for plan in plans for part in plan.parts])
    if outcomes is None:
        return None
    carried, at = [], 0
    for plan in plans:
        stop = at + len(plan.parts)
        told = None if plan.power is None else _power_of(plan.power, outcomes[stop - 1])
        carried.append(Carried(outcomes[at:stop], told))
        at = stop
    return carried


def _power_of(node: TextNode, outcome: Outcome) -> bytes | OSError:
    """What was read of a power node that was open; one that was not, or that tells more, is read now."""
    text = node.text_of(outcome) if node.is_open else None
    return _power_told(node) if text is None else text


def _power_told(node: TextNode) -> bytes | OSError:
    try:
        return node.read()
    except OSError as error:
        return error


@dataclass(slots=True)
class _Core:
    """One core, and which of its nodes exist, as positions in the table of its device.

    Attributes:
        reading: Its counters when it was put into the table, which `_CoreNodes.outline` follows.
        first: Position of its first column.
        total: Of the memory that it holds, which tells when `memory` must be read at once; old drivers have
            none.
        seen: Executions that had ended well when it was asked last whether `quiet` is read.
        succeeded: The same when `quiet` was due last.
        turns: How often it was due.
    """

    core: int
    path: str
    inode: int
    paths: list[str]
    readable: list[int]
    missing: list[Fault]
    reading: CoreReading
    first: int = 0
    progress: list[int] = field(default_factory=list)
    activity: list[int] = field(default_factory=list)
    total: list[int] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    quiet: list[int] = field(default_factory=list)
    seen: int = -1
    succeeded: int = -1
    turns: int = 0

    def place(self, first: int) -> None:
        """Stand at a position in the table."""
        self.first = first
        self.progress, self.activity = self._among(_PROGRESS), self._among(_ACTIVITY)
        self.total, self.memory = self._among(frozenset((_TOTAL,))), self._among(_MEMORY)
        often = {*self.progress, *self.total, *(self.memory if self.total else ())}
        self.quiet = [first + column for column in self.readable if first + column not in often]
        self.succeeded = -1

    def is_in_turn(self, values: Sequence[int]) -> bool:
        """Whether nodes that seldom change are read, now that they are due: one time in three if all is well.

        Cores are read in different turns, so that no sample costs much more than the others.
        """
        self.seen = values[self.first + _SUCCESS]
        goes_well = 0 <= self.succeeded < self.seen
        return not goes_well or (self.turns + 1 + self.core) % TURNS_OF_WORKING_CORES == 0

    def count_turn(self) -> None:
        """Note that its turn came, whether it was read or not."""
        self.succeeded = self.seen
        self.turns += 1

    def faults(self, table: NodeTable) -> list[Fault]:
        """What of it could not be read the last time."""
        found = [
            Fault(table.paths[position], reason)
            for position, reason in table.faults.items()
            if self.first <= position < self.first + _WIDTH
        ]
        return [*self.missing, *found]

    def _among(self, columns: frozenset[int]) -> list[int]:
        return [self.first + column for column in self.readable if column in columns]


class _CoreNodes:
    """The nodes of a device's cores, in one table, so that all of them are read at once.

    Attributes:
        outline: Readings of all cores, in the order of `cores`, whose counters may be older.
    """

    def __init__(self) -> None:
        self.cores: dict[int, _Core] = {}
        self.table = NodeTable([])
        self.outline: tuple[CoreReading, ...] = ()
        self._told: Container[int] | None = None
        self._asked: list[_Core] = []
        self._progress: list[int] = []
        self._often: list[int] = []
        self._totals: list[int] = []
        self._memory_due_ns = 0
        self._has_activity = self._has_missing = False
        self._is_new = True
        self._part = self._looked = self.table.part(b"")

    @property
    def readings(self) -> tuple[CoreReading, ...]:
        """Of all cores, in the order of `cores`; the same objects where nothing changed."""
        self.outline = kernels.followed(self.outline, bytes(self.table.words))
        return self.outline

    def part(self, now_ns: int, *, looks: bool, is_due: bool) -> Part | None:
        """What `read` would read first; None where it would look at more than `following` tells."""
        if self._is_new or self._has_activity:
            return None
        if not is_due:
            return self._looked if looks else self._part
        if self.table.faults:
            return None
        further = self._quiet_due() + self._memory_due(now_ns)
        return self.table.part(self._looked[-1] + array("i", further).tobytes())

    def following(self, changed: Sequence[int]) -> Part | None:
        """What must be read because some of `part` changed: memory by category; None where nothing must."""
        further = self._following(changed)
        return self.table.part(array("i", further).tobytes()) if further else None

    def put(self, core: _Core) -> None:
        """Take a core that is new, or was made anew."""
        self._keep_readings()
        self.cores[core.core] = core
        self._is_new = True

    def drop(self, core: int) -> None:
        """Leave a core out, if it is there."""
        if core in self.cores:
            self._keep_readings()
            del self.cores[core]
            self._is_new = True

    def clear(self) -> None:
        """Leave all cores out."""
        self.cores, self.outline, self._is_new = {}, (), True

    def close(self) -> None:
        """Give back all descriptors."""
        self.table.close()

    def by_number(self) -> dict[int, CoreReading]:
        """The last readings by the core's number on its device."""
        return dict(zip(self.cores, self.readings))

    def read(
        self, now_ns: int, told: Container[int], first_core_id: int, *, looks: bool, is_due: bool
    ) -> bool:
        """Read what may have changed; whether something did.

        Args:
            now_ns: Monotonic time.
            told: Ids of cores whose counters somebody else tells: they are not read. The same object as long
                as they are the same.
            first_core_id: Id of the first core.
            looks: Whether memory is looked at too.
            is_due: Whether everything is.
        """
        if self._is_new:
            self._make_table()
            is_due = True
        if told is not self._told:
            self._told = told
            self._ask([core for number, core in self.cores.items() if first_core_id + number not in told])
        if not self._asked:
            return False
        read = self.table.read
        changed = read(self._often if looks or is_due else self._progress)
        if changed and (looks or is_due or self._has_activity):
            further = self._following(changed)
            if further:
                changed = changed + read(further)
        if is_due:
            changed = changed + read(self._quiet_due()) + self._read_memory(now_ns)
            self.note_all(now_ns)
        return bool(changed)

    def faults(self, told: Container[int], first_core_id: int) -> list[Fault]:
        """What of the cores that nobody tells could not be read the last time."""
        if not self.table.faults and not self._has_missing:
            return []
        cores = [core for number, core in self.cores.items() if first_core_id + number not in told]
        return [fault for core in cores for fault in core.faults(self.table)]

    def _quiet_due(self) -> list[int]:
        values = self.table.values
        return [at for core in self._asked if core.is_in_turn(values) for at in core.quiet]

    def _read_memory(self, now_ns: int) -> list[int]:
        due = self._memory_due(now_ns)
        return self.table.read(due) if due else []

    def note_all(self, now_ns: int) -> None:
        """All that was due was read."""
        for core in self._asked:
            core.count_turn()
        if now_ns >= self._memory_due_ns:
            self._memory_due_ns = now_ns + MEMORY_INTERVAL_NS

    def _memory_due(self, now_ns: int) -> list[int]:
        """Now and then, and while something is garbage, memory by category whatever its total says."""
        if not self._totals or (now_ns < self._memory_due_ns and not self.table.faults):
            return []
        return [at for core in self._asked if core.total for at in core.memory]

    def _following(self, changed: Sequence[int]) -> list[int]:
        """What is read because something else changed: times of engines, and memory by category."""
        further: list[int] = []
        if self._has_activity:
            moved = {position // _WIDTH for position in changed}
            further += [at for core in self._asked if core.first // _WIDTH in moved for at in core.activity]
        grown = set(self._totals).intersection(changed)
        if grown:
            further += [at for core in self._asked if grown.intersection(core.total) for at in core.memory]
        return further

    def _ask(self, asked: list[_Core]) -> None:
        """From now on these cores are read."""
        if len(asked) == len(self._asked) and all(map(is_, asked, self._asked)):
            return
        self._asked = asked
        self._progress = [position for core in asked for position in core.progress]
        self._totals = [position for core in asked for position in core.total]
        self._often = self._progress + self._totals
        self._has_activity = any(core.activity for core in asked)
        self._part = self.table.part(array("i", self._progress).tobytes())
        self._looked = self.table.part(array("i", self._often).tobytes())

    def _keep_readings(self) -> None:
        """Let each core take its last counters along, for the table will be made anew."""
        for core, reading in zip(self.cores.values(), self.readings):
            core.reading = reading
        self.outline = ()

    def _make_table(self) -> None:
        """Join the nodes of all cores; what was read of them is read again."""
        self.table.close()
        self._keep_readings()
        paths: list[str] = []
        for core in self.cores.values():
            core.place(len(paths))
            paths += core.paths
        self.outline = tuple([core.reading for core in self.cores.values()])
        words = b"".join([reading.words for reading in self.outline])
        self.table = NodeTable(paths, layout.CORE_LIMITS * len(self.cores), words)
        self._told, self._asked, self._is_new, self._memory_due_ns = None, [], False, 0
        self._has_missing = any(core.missing for core in self.cores.values())


class DeviceNodes:
    """The nodes of one device.

    Args:
        root: The tree's folder.
        index: N of `neuronN`.
        with_counts: Whether counters are read; without, the devices are only listed.
    """

    def __init__(self, root: str, index: int, *, with_counts: bool = True) -> None:
        self.path = f"{root}/neuron{index}"
        self.facts, self._fact_faults = read_facts(self.path, index)
        self._with_counts = with_counts
        self._inode = os.stat(self.path).st_ino
        self._first_core_id = 0
        self._nodes = _CoreNodes()
        self._unused: dict[int, CoreReading] = {}
        self._has_new_facts = False
        self._folders_due_ns = 0
        self._quiet_due_ns = 0
        self._steady_until_ns = 0
        self._looked_ns = self._modified_ns = -LOOK_INTERVAL_NS
        self._order: list[int] = []
        self._known: Mapping[int, CoreReading] = MappingProxyType({})
        self._are_told = self._has_rows = False
        self._last: DeviceReading | None = None
        self._power: Power | None = None
        self._power_node = TextNode(f"{self.path}/stats/power/utilization")
        self._power_text: bytes | None = None
        self._ecc: Mapping[str, int] = {}
        self._host_memory: Mapping[str, int] = {}
        self._device_faults: list[Fault] = []
        self._table, self._positions, self._own = self._make_table()
        self._always = Plan((self._own,))

    @property
    def rows(self) -> bytearray | None:
        """The counters of all cores, a row for each; None where some are told otherwise, or not read."""
        return self._nodes.table.words if self._has_rows else None

    def plan(self, now_ns: int) -> Plan | None:
        """What is read now together with other devices; None where this one must be read by itself."""
        if now_ns < self._steady_until_ns:
            return self._always
        looks, is_due = now_ns >= self._folders_due_ns, now_ns >= self._quiet_due_ns
        if not self._has_rows or (looks and not self._is_known(now_ns)) or (is_due and self._table.faults):
            return None
        cores = self._nodes.part(now_ns, looks=looks or is_due, is_due=is_due)
        if cores is None:
            return None
        if not looks and not is_due:
            if cores is not self._always.parts[0]:
                self._always = Plan((cores,))
            self._steady_until_ns = self.due_ns
            return self._always
        folder = Folder(self.path, self._inode, self._modified_ns) if looks else None
        if not is_due:
            return Plan((cores,), folder)
        power = self._power_node
        return Plan((cores, self._own, *((power.part(),) if power.is_open else ())), folder, power)

    def take(self, now_ns: int, plan: Plan, carried: Carried) -> tuple[DeviceReading | None, Part | None]:
        """Take what was read as planned.

        Returns:
            A reading in outline where this is another now, and what must be read in addition.
        """
        if plan.folder is not None:
            self._folders_due_ns = now_ns + FOLDER_INTERVAL_NS
        changed, others = carried.outcomes[0]
        if others:
            changed = changed + self._nodes.table.take(others)
        further = None if plan.is_progress else self._nodes.following(changed)
        if carried.power is None:
            return None, further
        self._quiet_due_ns = now_ns + QUIET_INTERVAL_NS
        self._nodes.note_all(now_ns)
        self._table.take(carried.outcomes[1][1])
        self._take_own()
        self._take_power(carried.power)
        return self._now(self._nodes.outline), further

    def take_others(self, others: list[tuple[int, bytes | None]]) -> None:
        """Take what was left of the cores' nodes that had to be read in addition."""
        self._nodes.table.take(others)

    def read(
        self,
        now_ns: int,
        first_core_id: int,
        known: Mapping[int, CoreReading] = MappingProxyType({}),
        *,
        in_outline: bool = False,
    ) -> DeviceReading:
        """Read what may have changed.

        Args:
            now_ns: Monotonic time.
            first_core_id: Id of the device's first core in the host.
            known: Cores, by id, whose counters were told by their users: they are not read.
            in_outline: Whether counters may be older where there are `rows`.

        Raises:
            OSError: The device is gone, or is another one than it was.
        """
        self._steady_until_ns = 0
        if first_core_id != self._first_core_id:
            self._renumber(first_core_id)
        looks, is_due = now_ns >= self._folders_due_ns, now_ns >= self._quiet_due_ns
        if looks:
            self._folders_due_ns = now_ns + FOLDER_INTERVAL_NS
            self._look_at_folders(now_ns, first_core_id)
        if is_due:
            # Devices are not all due at the same time, so that no sample costs much more than the others.
            phase = self.facts.index % QUIET_PHASES if self._quiet_due_ns == 0 else 0
            self._quiet_due_ns = now_ns + QUIET_INTERVAL_NS - phase * QUIET_INTERVAL_NS // QUIET_PHASES
            self._table.read(self._positions)
            self._take_own()
            self._take_power(_power_told(self._power_node))
        elif known is self._known and self._are_told and self._last is not None:
            return self._last
        cores = self._read_cores(now_ns, known, looks=looks, is_due=is_due)
        if cores is None:
            cores = self._nodes.outline if in_outline else self._nodes.readings
        return self._now(cores)

    def _now(self, cores: tuple[CoreReading, ...]) -> DeviceReading:
        """The device with these cores; the same object as before where nothing is other."""
        now = DeviceReading(self.facts, cores, self._ecc, self._host_memory, self._power)
        if self._last is None or not _is_same_device(now, self._last):
            self._last = now
        return self._last

    def _take_own(self) -> None:
        """Take the device's own nodes as they were read last."""
        values = self._table.values
        self._ecc = _same_or_new(self._ecc, layout.ECC_NODES, values[:_ECC_COUNT])
        held = values[_ECC_COUNT:]
        self._host_memory = _same_or_new(self._host_memory, layout.HOST_MEMORY_CATEGORIES, held)

    def _read_cores(
        self, now_ns: int, known: Mapping[int, CoreReading], *, looks: bool, is_due: bool
    ) -> tuple[CoreReading, ...] | None:
        """The cores' readings; None where `rows` have them."""
        first, nodes = self._first_core_id, self._nodes
        is_moved = nodes.read(now_ns, known, first, looks=looks, is_due=is_due)
        if known is not self._known or looks:
            self._known = known
            self._are_told = bool(known) and all(first + number in known for number in nodes.cores)
        self._has_rows = not known and not self._unused and self._order == list(nodes.cores)
        if self._has_rows:
            return None
        if not known and not is_moved and self._last is not None and not looks:
            return self._last.cores
        by_users = [known.get(first + number) for number in self._order] if known else [None]
        if None not in by_users:
            return tuple([core for core in by_users if core is not None])
        read = nodes.by_number()
        found = [
            known.get(first + number) or read.get(number) or self._unused[number] for number in self._order
        ]
        return tuple(found)

    def filled(self, outline: DeviceReading) -> DeviceReading:
        """A reading with the counters of now."""
        cores = self._nodes.readings if self._has_rows else ()
        return outline._replace(cores=cores) if len(cores) == len(outline.cores) else outline

    @property
    def due_ns(self) -> int:
        """When more is read than what is always read."""
        return min(self._folders_due_ns, self._quiet_due_ns)

    def is_due(self, now_ns: int) -> bool:
        """Whether `read` would look at any node, given that users tell the counters of all cores."""
        return now_ns >= self.due_ns or not self._are_told

    def faults(self) -> list[Fault]:
        """What could not be read the last time."""
        found = [*self._fact_faults, *self._device_faults]
        if self._table.faults:
            found += self._table.fault_list()
        return found + self._nodes.faults(self._known, self._first_core_id)

    def close(self) -> None:
        """Give back all descriptors."""
        self._table.close()
        self._power_node.close()
        self._nodes.close()

    def _make_table(self) -> tuple[NodeTable, list[int], Part]:
        """The device's own nodes, and which of them exist."""
        names = [_existing(self.path, [path + end for end in _PLAIN]) for _, path, _ in DEVICE_COLUMNS]
        table = NodeTable([name or "" for name in names], [limit for _, _, limit in DEVICE_COLUMNS])
        positions = [position for position, name in enumerate(names) if name]
        return table, positions, table.part(array("i", positions).tobytes())

    def _renumber(self, first_core_id: int) -> None:
        """Begin anew with the cores: the host's other devices turned out to have more, or fewer."""
        self._first_core_id = first_core_id
        self._nodes.clear()
        self._unused, self._order, self._has_rows = {}, [], False
        self._folders_due_ns = 0
        self._last = None

    def _read_facts_again(self) -> None:
        """Follow a device that was read while it was being made, or whose facts were unreadable.

        What changed may have been read in between: it is read once more later.
        """
        facts, self._fact_faults = read_facts(self.path, self.facts.index)
        self._has_new_facts = False
        if facts != self.facts:
            self.facts = facts
            self._table.close()
            self._table, self._positions, self._own = self._make_table()
            self._has_new_facts = True

    def _look_at_folders(self, now_ns: int, first_core_id: int) -> None:
        entry = os.stat(self.path)
        if entry.st_ino != self._inode:
            raise FileNotFoundError(2, "the device was made anew", self.path)
        is_as_before = entry.st_mtime_ns == self._modified_ns
        if is_as_before and self._is_known(now_ns):
            return
        is_as_before = is_as_before and self._is_complete()
        present = list_indices(self.path, CORE_NAME)
        if not is_as_before or present != self._order or self._has_new_facts:
            self._read_facts_again()
        # sysfs does not always tell that a folder's entries changed: they are looked at now and then anyway.
        phase = self.facts.index % LOOK_PHASES if not self._order else 0
        self._looked_ns = now_ns - phase * LOOK_INTERVAL_NS // LOOK_PHASES
        self._modified_ns = lasting_mark(entry.st_mtime_ns)
        for table in (self._table, self._nodes.table):
            table.close_removed()
        for gone in set(self._nodes.cores) - set(present):
            self._nodes.drop(gone)
        self._unused = {}
        for core in present:
            self._look_at_core(core, first_core_id + core)
        self._order = sorted([*self._nodes.cores, *self._unused])
        self._are_told = False

    def _is_known(self, now_ns: int) -> bool:
        """Whether a full look at the folder can wait while it is as it was."""
        return self._is_complete() and now_ns - self._looked_ns < LOOK_INTERVAL_NS

    def _is_complete(self) -> bool:
        return bool(self._order and self.facts.architecture and not self._fact_faults)

    def _look_at_core(self, core: int, core_id: int) -> None:
        """Open a core that is new; a link stands for a core that nobody used, whose counters are all 0."""
        path = f"{self.path}/neuron_core{core}"
        known = self._nodes.cores.get(core)
        try:
            entry = os.lstat(path)
        except OSError:
            return
        if known is not None and known.inode == entry.st_ino and not known.missing:
            return
        self._nodes.drop(core)
        if not self._with_counts or os.path.islink(path):
            is_clocked = os.path.exists(f"{path}/stats/clock")
            self._unused[core] = CoreReading(core_id, self.facts.index, core, is_clocked=is_clocked)
        else:
            self._nodes.put(self._open_core(core, core_id, path, entry.st_ino))

    def _open_core(self, core: int, core_id: int, path: str, inode: int) -> _Core:
        paths: list[str] = []
        readable: list[int] = []
        missing: list[Fault] = []
        for position, (_, candidates, is_required) in enumerate(layout.CORE_COLUMNS):
            found = _existing(path, candidates)
            paths.append(found or f"{path}/{candidates[0]}")
            if found:
                readable.append(position)
            elif is_required:
                missing.append(Fault(paths[-1], "no such file or directory"))
        is_clocked = layout.COLUMN_OF["elapsed_ns"] in readable
        return _Core(
            core=core,
            path=path,
            inode=inode,
            paths=paths,
            readable=readable,
            missing=missing,
            reading=CoreReading(core_id, self.facts.index, core, is_clocked=is_clocked),
        )

    def _take_power(self, told: bytes | OSError) -> None:
        if told == self._power_text:
            return
        self._device_faults = []
        try:
            if isinstance(told, OSError):
                raise told
            self._power = parse_power(told.decode("utf-8", "replace"))
            self._power_text = told
        except FileNotFoundError:
            self._power, self._power_text = None, None  # Drivers before 2025 have no such node.
        except (OSError, ValueError) as error:
            self._power, self._power_text = None, None
            self._power_node.close()
            reason = describe_os_error(error) if isinstance(error, OSError) else str(error)
            self._device_faults.append(Fault(self._power_node.path, reason))


def _is_same_device(now: DeviceReading, last: DeviceReading) -> bool:
    parts = (now.facts, now.ecc, now.host_memory, now.power)
    others = (last.facts, last.ecc, last.host_memory, last.power)
    return all(map(is_, parts, others)) and are_same(now.cores, last.cores)


def _same_or_new(last: Mapping[str, int], names: Sequence[str], values: Sequence[int]) -> Mapping[str, int]:
    """Values by name; the same object as before where they are equal: whoever compares need not look."""
    now = dict(zip(names, values))
    return last if last == now else now


def parse_power(text: str) -> Power:
    """Reads "STATUS,EPOCH_S,MIN,MAX,AVG" (sysfs guide, "power/utilization").

    Raises:
        ValueError: It is not of that form.
    """
    parts = text.strip().split(",")
    if len(parts) != 5:
        raise ValueError(f"not STATUS,TIME,MIN,MAX,AVG: {text.strip()[:40]!r}")
    try:
        sampled_at_s, (least, most, mean) = int(parts[1]), map(float, parts[2:])
        if not 0 <= sampled_at_s < layout.MOST_EVENTS or not all(map(isfinite, (least, most, mean))):
            raise ValueError
        return Power(parts[0], sampled_at_s, least, most, mean)
    except ValueError:
        raise ValueError(f"not STATUS,TIME,MIN,MAX,AVG: {text.strip()[:40]!r}") from None


def read_facts(path: str, index: int) -> tuple[DeviceFacts, list[Fault]]:
    """What seldom changes about a device, and which of it is garbage; what cannot be read stays empty.

    Raises:
        NotADirectoryError: There is something else of a device's name.
    """
    cores = list_indices(path, CORE_NAME)
    if not cores and not os.path.isdir(path):
        raise NotADirectoryError(20, "not a directory", path)
    pci = _pci_folder(path)
    faults: list[Fault] = []
    facts = DeviceFacts(
        index=index,
        # A core that is there counts, whatever the node says.
        core_count=max(_integer(f"{path}/core_count", MOST_CORES, faults), cores[-1] + 1 if cores else 0),
        architecture=_text(f"{path}/info/architecture/arch_type"),
        core_architecture=_text(f"{path}/neuron_core{cores[0]}/info/architecture/arch_type") if cores else "",
        name=_text(f"{path}/info/architecture/device_name"),
        family=_text(f"{path}/info/architecture/instance_type"),
        serial_number=_text(f"{path}/info/serial_number"),
        connected_to=tuple(
            int(part) for part in _text(f"{path}/connected_devices").split(",") if INDEX.fullmatch(part)
        ),
        memory_bytes=_integer(f"{path}/info/memory_size", layout.MOST_BYTES, faults),
        bdf=os.path.basename(pci),
        numa_node=_text(f"{pci}/numa_node") if pci else "",
        cpu_affinity=_text(f"{pci}/local_cpulist") if pci else "",
    )
    return facts, faults


def _pci_folder(path: str) -> str:
    """The PCI device behind a Neuron device, "" where that cannot be told.

    The driver's tree does not name it. With one Neuron device in the host there is one candidate.
    """
    if len(list_indices(os.path.dirname(path), DEVICE_NAME)) != 1 or not path.startswith(layout.REAL_ROOT):
        return ""
    try:
        bound = [name for name in os.listdir(PCI_DRIVER) if PCI_ADDRESS.fullmatch(name)]
    except OSError:
        return ""
    return os.path.realpath(f"{PCI_DRIVER}/{bound[0]}") if len(bound) == 1 else ""


def _existing(folder: str, names: Sequence[str]) -> str | None:
    """The first of the nodes that exists below a folder."""
    return next((path for path in (f"{folder}/{name}" for name in names) if os.path.isfile(path)), None)


def _text(path: str) -> str:
    try:
        return read_text(path).split("\n", 1)[0].strip()
    except OSError:
        return ""


def _integer(path: str, largest: int, faults: list[Fault]) -> int:
    """A node's number; 0 where there is none, and a fault where there is something else."""
    try:
        text = read_text(path).split("\n", 1)[0].strip()
    except FileNotFoundError:
        return 0  # Not every driver has every node.
    except OSError as error:
        faults.append(Fault(path, describe_os_error(error)))
        return 0
    number = kernels.parse_count(text.encode())
    if number is None or not 0 <= number <= largest:
        faults.append(Fault(path, f"not a number from 0 to {largest}: {text[:24]!r}"))
        return 0
    return number
