"""Where device time goes: by module, by operation and by source line, from one set of charges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from neuron_profile.analysis.own_lines import OwnLine, load_own_lines
from neuron_profile.analysis.source_frames import SourceFrame, SourceLine, load_frames, stack
from neuron_profile.analysis.time.charges import Charge, Charges, charge_device_time
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

ROOT = "/"
Key = TypeVar("Key")
Row = TypeVar("Row", "OperationCost", "LineCost")


@frozen
class Cost:
    """Device time of a group of operations, split into forward and backward, and how many they were."""

    forward_ns: float
    backward_ns: float
    count: int

    @property
    def device_ns(self) -> float:
        """Forward and backward time."""
        return self.forward_ns + self.backward_ns


@dataclass(frozen=True)
class ModuleNode:
    """A module with everything inside it.

    Attributes:
        path: "/model/layers/0"; "/" for the whole program.
        cost: Its own operations and those of the modules inside.
        own_ns: Device time of operations in the module itself, outside its submodules.
        children: Submodules by falling device time.
    """

    path: str
    cost: Cost
    own_ns: float
    children: tuple[ModuleNode, ...] = ()

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rpartition("/")[2] or ROOT


@frozen
class OperationCost:
    """An operation by its framework name."""

    name: str
    cost: Cost


@frozen
class LineCost:
    """A source line.

    Attributes:
        cost: Of the operations that belong to the line: it is their innermost line, of the user's own code
            or of all code, as the list says that it stands in.
        self_ns: Device time of operations of which it is the innermost line of all.
        total_ns: The same with all that it calls.
    """

    place: SourceLine
    function: str
    cost: Cost
    self_ns: float = 0.0
    total_ns: float = 0.0


@dataclass(frozen=True)
class Hotspots:
    """All device time, three ways; each list by falling device time.

    Attributes:
        device_ns: Device time: sum of the execution spans.
        unattributed_ns: Part that belongs to no framework operation.
        without_line_ns, without_module_ns: Parts that belong to no source line, to no module.
        own_code_ns: Part on lines of the user's own code.
        lines: Each moment at the innermost line of the user's own code; where a stack has none, at its
            innermost line.
        exact_lines: Each moment at the innermost line of all, in a library too.
        charges: What the lists are summed from.
    """

    device_ns: float
    unattributed_ns: float
    without_line_ns: float
    without_module_ns: float
    modules: ModuleNode
    operations: tuple[OperationCost, ...]
    lines: tuple[LineCost, ...]
    charges: tuple[Charge, ...] = ()
    exact_lines: tuple[LineCost, ...] = ()
    own_code_ns: float = 0.0


def find_hotspots(profile: Profile) -> Hotspots:
    """Charge the device time of a profile and sum it up by module, operation and line."""
    charges, frames = charge_device_time(profile), load_frames(profile)
    own, exact = load_own_lines(profile), _exact_lines(frames)
    times = _LineTimes.of(charges.charges, frames)
    lines = _lines(charges.charges, own, times)
    return Hotspots(
        device_ns=charges.device_ns,
        unattributed_ns=charges.unattributed_ns,
        without_line_ns=charges.device_ns - sum(line.cost.device_ns for line in lines),
        without_module_ns=charges.device_ns - sum(c.device_ns for c in charges.charges if c.origin.module),
        modules=module_tree(charges),
        operations=_operations(charges.charges),
        lines=lines,
        charges=charges.charges,
        exact_lines=_lines(charges.charges, exact, times),
        own_code_ns=sum(
            c.device_ns for c in charges.charges if c.origin.stack in own and own[c.origin.stack].is_own
        ),
    )


def _operations(charges: Iterable[Charge]) -> tuple[OperationCost, ...]:
    groups = _group(charges, lambda charge: charge.origin.operation)
    return _falling((OperationCost(name, cost) for name, cost in groups.items()), lambda row: row.name)


@dataclass(frozen=True)
class _LineTimes:
    """Device time by line: as the innermost of all, and with all that it calls."""

    self_ns: Mapping[SourceLine, float]
    total_ns: Mapping[SourceLine, float]

    @classmethod
    def of(cls, charges: Iterable[Charge], frames: Mapping[str, SourceFrame]) -> _LineTimes:
        """Sum up the charges of each stack; a line counts once, however often it stands on it."""
        by_stack: dict[str, float] = defaultdict(float)
        for charge in charges:
            by_stack[charge.origin.stack] += charge.device_ns
        self_ns: dict[SourceLine, float] = defaultdict(float)
        total_ns: dict[SourceLine, float] = defaultdict(float)
        for leaf, device_ns in by_stack.items():
            chain = [_place(frame) for frame in stack(frames, leaf)]
            for place in chain[:1]:
                self_ns[place] += device_ns
            for place in dict.fromkeys(chain):
                total_ns[place] += device_ns
        return cls(self_ns, total_ns)


def _exact_lines(frames: Mapping[str, SourceFrame]) -> dict[str, OwnLine]:
    return {leaf: OwnLine(_place(frame), frame.function, False) for leaf, frame in frames.items()}


def _lines(
    charges: Iterable[Charge], lines: Mapping[str, OwnLine], times: _LineTimes
) -> tuple[LineCost, ...]:
    """Lines by falling time; `lines` says which line each stack counts to."""
    placed = [charge for charge in charges if charge.origin.stack in lines]
    functions = {lines[c.origin.stack].place: lines[c.origin.stack].function for c in placed}
    groups = _group(placed, lambda charge: lines[charge.origin.stack].place)
    rows = (
        LineCost(place, functions[place], cost, times.self_ns.get(place, 0.0), times.total_ns.get(place, 0.0))
        for place, cost in groups.items()
    )
    return _falling(rows, lambda row: row.place)


def _place(frame: SourceFrame) -> SourceLine:
    return SourceLine(frame.file, frame.line)


def _group(charges: Iterable[Charge], key: Callable[[Charge], Key]) -> dict[Key, Cost]:
    """Summed cost per key."""
    groups: dict[Key, list[Charge]] = defaultdict(list)
    for charge in charges:
        groups[key(charge)].append(charge)
    return {name: _sum(group) for name, group in groups.items()}


def _sum(charges: Sequence[Charge]) -> Cost:
    return Cost(
        sum(charge.device_ns for charge in charges if not charge.origin.backward),
        sum(charge.device_ns for charge in charges if charge.origin.backward),
        sum(charge.count for charge in charges),
    )


def _falling(rows: Iterable[Row], name: Callable[[Row], Any]) -> tuple[Row, ...]:
    """By falling device time; equal ones by name, so that the order never changes."""
    return tuple(sorted(rows, key=lambda row: (-row.cost.device_ns, name(row))))


@dataclass
class _Module:
    """A module under construction."""

    path: str
    own: list[Charge] = field(default_factory=list)
    children: dict[str, _Module] = field(default_factory=dict)


def module_tree(charges: Charges) -> ModuleNode:
    """The modules as a tree; the root also holds operations outside any module."""
    root = _Module(ROOT)
    for charge in charges.charges:
        node = root
        for part in (part for part in charge.origin.module.split("/") if part):
            path = f"{node.path.rstrip('/')}/{part}"
            node = node.children.setdefault(part, _Module(path))
        node.own.append(charge)
    return _finish(root)


def _finish(module: _Module) -> ModuleNode:
    children = tuple(
        sorted(
            (_finish(child) for child in module.children.values()),
            key=lambda node: (-node.cost.device_ns, node.path),
        )
    )
    own = _sum(module.own)
    total = Cost(
        own.forward_ns + sum(child.cost.forward_ns for child in children),
        own.backward_ns + sum(child.cost.backward_ns for child in children),
        own.count + sum(child.cost.count for child in children),
    )
    return ModuleNode(module.path, total, own.device_ns, children)
