"""One device's nodes: what they are, and reading them with as few system calls as the changes allow."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from operator import is_
from types import MappingProxyType

from neuron_monitor.api import kernels, layout
from neuron_monitor.api.nodes import Fault, NodeTable, TextNode, describe_os_error, read_text
from neuron_monitor.api.readings import CoreReading, DeviceFacts, DeviceReading, Power
from neuron_monitor.api.root import CORE_NAME, DEVICE_NAME, list_indices
from neuron_tools.device.driver.modified import lasting_mark

# What seldom changes is read this often: memory by category, errors, and all of a core that stands still.
QUIET_INTERVAL_NS = 2_000_000_000
QUIET_PHASES = 4
LOOK_INTERVAL_NS = 10_000_000_000
# How often folders are looked at for cores that came, went, or were made anew.
FOLDER_INTERVAL_NS = 250_000_000
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


@dataclass(slots=True)
class _Core:
    """The nodes of one core: its own table, and which of them exist."""

    core: int
    path: str
    inode: int
    table: NodeTable
    progress: list[int]
    activity: list[int]
    quiet: list[int]
    is_clocked: bool
    missing: list[Fault]
    due_ns: int
    reading: CoreReading

    def read(self, now_ns: int) -> CoreReading:
        changed = self.table.read(self.progress)
        if changed:
            self.table.read(self.activity)
        if now_ns >= self.due_ns:
            self.due_ns = now_ns + QUIET_INTERVAL_NS
            changed += self.table.read(self.quiet)
        if changed:
            old = self.reading
            counts = tuple(self.table.values)
            self.reading = CoreReading(old.id, old.device, old.core, counts, self.is_clocked)
        return self.reading


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
        self._cores: dict[int, _Core] = {}
        self._unused: dict[int, CoreReading] = {}
        self._folders_due_ns = 0
        self._quiet_due_ns = 0
        self._looked_ns = self._modified_ns = -LOOK_INTERVAL_NS
        self._order: list[int] = []
        self._known: Mapping[int, CoreReading] = MappingProxyType({})
        self._are_told = False
        self._is_due = True
        self._last: DeviceReading | None = None
        self._power: Power | None = None
        self._power_node = TextNode(f"{self.path}/stats/power/utilization")
        self._power_text: bytes | None = None
        self._ecc: Mapping[str, int] = {}
        self._host_memory: Mapping[str, int] = {}
        self._device_faults: list[Fault] = []
        self._table, self._positions = self._make_table()

    def read(
        self, now_ns: int, first_core_id: int, known: Mapping[int, CoreReading] = MappingProxyType({})
    ) -> DeviceReading:
        """Read what may have changed.

        Args:
            now_ns: Monotonic time.
            first_core_id: Id of the device's first core in the host.
            known: Cores, by id, whose counters were told by their users: they are not read.

        Raises:
            OSError: The device is gone, or is another one than it was.
        """
        if first_core_id != self._first_core_id:
            self._renumber(first_core_id)
        if now_ns >= self._folders_due_ns:
            self._folders_due_ns = now_ns + FOLDER_INTERVAL_NS
            self._look_at_folders(now_ns, first_core_id)
        if now_ns >= self._quiet_due_ns:
            # Devices are not all due at the same time, so that no sample costs much more than the others.
            phase = self.facts.index % QUIET_PHASES if self._quiet_due_ns == 0 else 0
            self._quiet_due_ns = now_ns + QUIET_INTERVAL_NS - phase * QUIET_INTERVAL_NS // QUIET_PHASES
            self._is_due = True
            self._table.read(self._positions)
            values = self._table.values
            self._ecc = dict(zip(layout.ECC_NODES, values[:_ECC_COUNT]))
            self._host_memory = dict(zip(layout.HOST_MEMORY_CATEGORIES, values[_ECC_COUNT:]))
            self._read_power()
        elif known is self._known and self._are_told and self._last is not None:
            return self._last
        self._known = known
        told = [known.get(first_core_id + core) for core in self._order]
        self._are_told = all(each or core in self._unused for core, each in zip(self._order, told))
        cores = tuple([each or self._read_core(core, now_ns) for core, each in zip(self._order, told)])
        if self._last is None or self._is_due or not _are_same(cores, self._last.cores):
            self._is_due = False
            self._last = self._reading(cores)
        return self._last

    def _reading(self, cores: tuple[CoreReading, ...]) -> DeviceReading:
        return DeviceReading(self.facts, cores, self._ecc, self._host_memory, self._power)

    def is_due(self, now_ns: int) -> bool:
        """Whether `read` would look at any node, given that users tell the counters of all cores."""
        return now_ns >= min(self._folders_due_ns, self._quiet_due_ns) or not self._are_told

    def faults(self) -> list[Fault]:
        """What could not be read the last time."""
        found = [*self._fact_faults, *self._device_faults, *self._table.fault_list()]
        for number, core in self._cores.items():
            if self._first_core_id + number not in self._known:  # Else its users tell its counters.
                found += core.missing
                found += core.table.fault_list()
        return found

    def close(self) -> None:
        """Give back all descriptors."""
        self._table.close()
        self._power_node.close()
        for core in self._cores.values():
            core.table.close()

    def _read_core(self, core: int, now_ns: int) -> CoreReading:
        return self._cores[core].read(now_ns) if core in self._cores else self._unused[core]

    def _make_table(self) -> tuple[NodeTable, list[int]]:
        """The device's own nodes, and which of them exist."""
        names = [_existing(self.path, [path + end for end in _PLAIN]) for _, path, _ in DEVICE_COLUMNS]
        table = NodeTable([name or "" for name in names], [limit for _, _, limit in DEVICE_COLUMNS])
        return table, [position for position, name in enumerate(names) if name]

    def _renumber(self, first_core_id: int) -> None:
        """Begin anew with the cores: the host's other devices turned out to have more, or fewer."""
        self._first_core_id = first_core_id
        for core in self._cores.values():
            core.table.close()
        self._cores, self._unused, self._order = {}, {}, []
        self._folders_due_ns = 0
        self._last = None

    def _read_facts_again(self) -> None:
        """Follow a device that was read while it was being made, or whose facts were unreadable."""
        facts, self._fact_faults = read_facts(self.path, self.facts.index)
        if facts != self.facts:
            self.facts = facts
            self._table.close()
            self._table, self._positions = self._make_table()
            self._is_due = True

    def _look_at_folders(self, now_ns: int, first_core_id: int) -> None:
        entry = os.stat(self.path)
        if entry.st_ino != self._inode:
            raise FileNotFoundError(2, "the device was made anew", self.path)
        is_due = now_ns - self._looked_ns >= LOOK_INTERVAL_NS
        is_complete = bool(self.facts.architecture and not self._fact_faults)
        if entry.st_mtime_ns == self._modified_ns and not is_due and self._order and is_complete:
            return
        self._read_facts_again()
        # sysfs does not always tell that a folder's entries changed: they are looked at now and then anyway.
        phase = self.facts.index % QUIET_PHASES if not self._order else 0
        self._looked_ns = now_ns - phase * LOOK_INTERVAL_NS // QUIET_PHASES
        self._modified_ns = lasting_mark(entry.st_mtime_ns)
        for table in (self._table, *(core.table for core in self._cores.values())):
            table.close_removed()
        present = list_indices(self.path, CORE_NAME)
        for gone in set(self._cores) - set(present):
            self._cores.pop(gone).table.close()
        self._unused = {}
        for core in present:
            self._look_at_core(core, first_core_id + core, now_ns)
        self._order = sorted([*self._cores, *self._unused])
        self._are_told = False

    def _look_at_core(self, core: int, core_id: int, now_ns: int) -> None:
        """Open a core that is new; a link stands for a core that nobody used, whose counters are all 0."""
        path = f"{self.path}/neuron_core{core}"
        known = self._cores.get(core)
        try:
            entry = os.lstat(path)
        except OSError:
            return
        if known is not None and known.inode == entry.st_ino and not known.missing:
            return
        if known is not None:
            self._cores.pop(core).table.close()
        if not self._with_counts or os.path.islink(path):
            is_clocked = os.path.exists(f"{path}/stats/clock")
            self._unused[core] = CoreReading(core_id, self.facts.index, core, is_clocked=is_clocked)
        else:
            self._cores[core] = self._open_core(core, core_id, path, entry.st_ino, now_ns)

    def _open_core(self, core: int, core_id: int, path: str, inode: int, now_ns: int) -> _Core:
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
        progress = [layout.COLUMN_OF[name] for name in layout.PROGRESS_COLUMNS]
        is_clocked = layout.COLUMN_OF["elapsed_ns"] in readable
        return _Core(
            core=core,
            path=path,
            inode=inode,
            table=NodeTable(paths, layout.CORE_LIMITS),
            progress=[position for position in progress if position in readable],
            activity=[position for position in readable if position in layout.ACTIVITY_POSITIONS],
            quiet=[position for position in readable if position not in progress],
            is_clocked=is_clocked,
            missing=missing,
            due_ns=now_ns,
            reading=CoreReading(core_id, self.facts.index, core, is_clocked=is_clocked),
        )

    def _read_power(self) -> None:
        node, self._device_faults = self._power_node, []
        try:
            text = node.read()
            if text != self._power_text:
                self._power_text, self._power = text, parse_power(text.decode("utf-8", "replace"))
        except FileNotFoundError:
            self._power, self._power_text = None, b""  # Drivers before 2025 have no such node.
        except (OSError, ValueError) as error:
            self._power, self._power_text = None, b""
            node.close()
            reason = describe_os_error(error) if isinstance(error, OSError) else str(error)
            self._device_faults.append(Fault(node.path, reason))


def _are_same(cores: tuple[CoreReading, ...], others: tuple[CoreReading, ...]) -> bool:
    return len(cores) == len(others) and all(map(is_, cores, others))


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
