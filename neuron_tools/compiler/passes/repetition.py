"""Finds runs of groups that repeat: the equal layers of a model, which are compiled once.

Two windows of groups are equal if they hold the same operations on the same types, wired alike; the values
that they read from outside, and the framework rows that they came from, may differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from neuron_tools.compiler.hlo import Operation, Region
from neuron_tools.compiler.passes.groups import FusionPlan, Group
from neuron_tools.compiler.views import is_lazy

MINIMUM_OPERATIONS = 6
"""Shorter windows are not worth an edge between two copies, over which nothing is prefetched."""
_NEVER_EQUAL = frozenset({"sort", "top_k"})
"""Their code depends on who reads the results."""


@dataclass(frozen=True)
class Window:
    """One copy of a repeated run of groups, with what stands for what in the first one.

    Attributes:
        groups: The groups, in order.
        values: Value of the first window -> value of this one.
        framework: Framework row of the first window -> row of this one.
    """

    groups: tuple[Group, ...]
    values: Mapping[int, int] = field(default_factory=dict)
    framework: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Repetition:
    """Equal windows that follow one another; a single window is just groups."""

    windows: tuple[Window, ...]


def find_repetitions(plan: FusionPlan) -> tuple[Repetition, ...]:
    """The plan's groups in order, repeated runs folded."""
    return tuple(_fold(plan, plan.groups))


def _fold(plan: FusionPlan, groups: tuple[Group, ...]) -> Iterable[Repetition]:
    found = _best_run(plan, groups)
    if found is None:
        if groups:
            yield Repetition((Window(groups),))
        return
    start, windows = found
    end = start + sum(len(window.groups) for window in windows)
    yield from _fold(plan, groups[:start])
    yield Repetition(tuple(windows))
    yield from _fold(plan, groups[end:])


def _best_run(plan: FusionPlan, groups: Sequence[Group]) -> tuple[int, list[Window]] | None:
    """(first group, equal windows) of the run that saves most operations."""
    codes: dict[object, int] = {}
    signatures = np.array([codes.setdefault(_signature(plan, g), len(codes)) for g in groups], np.int64)
    sizes = np.concatenate([[0], np.cumsum([len(group.operations) for group in groups])])
    for start, period, count in _candidates(signatures, sizes):
        windows = _equal_windows(plan, groups, start, period, count)
        if len(windows) > 1:
            return start, windows
    return None


def _candidates(
    signatures: np.ndarray[tuple[int], np.dtype[np.int64]], sizes: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> list[tuple[int, int, int]]:
    """(start, period, count) of runs whose groups look alike, those that save most operations first."""
    found: list[tuple[int, int, int, int]] = []
    count = len(signatures)
    for period in range(1, count // 2 + 1):
        equal = np.concatenate([[0], signatures[period:] == signatures[:-period], [0]]).astype(np.int8)
        edges = np.flatnonzero(np.diff(equal))
        for first, last in zip(edges[::2].tolist(), edges[1::2].tolist()):
            repeats = (last - first) // period + 1
            if repeats < 2:
                continue
            for shift in {0, min(period - 1, (last - first) % period)}:
                start = first + shift
                operations = int(sizes[start + period] - sizes[start])
                if operations >= MINIMUM_OPERATIONS:
                    found.append((-(repeats - 1) * operations, period, start, repeats))
    return [(start, period, repeats) for _, period, start, repeats in sorted(found)]


def _equal_windows(
    plan: FusionPlan, groups: Sequence[Group], start: int, period: int, count: int
) -> list[Window]:
    first = tuple(groups[start : start + period])
    windows = [Window(first)]
    for index in range(1, count):
        place = start + index * period
        window = _Matcher(plan).match(first, tuple(groups[place : place + period]))
        if window is None:
            break
        windows.append(window)
    return windows


def _signature(plan: FusionPlan, group: Group) -> object:
    """What a group is, whatever it reads."""
    if group.kind in _NEVER_EQUAL:
        return id(group)
    values = list(group.shapes)
    return (
        group.kind,
        group.domain,
        group.element_count,
        tuple(_operation_signature(plan, operation) for operation in group.operations),
        tuple(group.shapes.values()),
        tuple(values.index(output) for output in group.outputs),
        tuple(value in plan.in_place for value in values),
    )


def _operation_signature(plan: FusionPlan, operation: Operation) -> object:
    types = plan.module.values
    return (
        operation.opcode,
        tuple(types[value].type for value in operation.operands),
        tuple(types[value].type for value in operation.results),
        str(sorted(operation.attributes.items(), key=lambda item: item[0])),
        len(operation.framework),
        tuple(_region_signature(plan, region) for region in operation.regions),
    )


def _region_signature(plan: FusionPlan, region: Region) -> object:
    return tuple(_operation_signature(plan, operation) for operation in region.operations)


class _Matcher:
    """Walks through two windows in step and notes what corresponds."""

    def __init__(self, plan: FusionPlan) -> None:
        self._plan = plan
        self._values: dict[int, int] = {}
        self._framework: dict[int, int] = {}
        self._inside: tuple[set[int], set[int]] = (set(), set())

    def match(self, first: Sequence[Group], second: Sequence[Group]) -> Window | None:
        """The second window with its correspondence to the first; None if they are not equal."""
        self._inside = (_made(first), _made(second))
        equal = all(
            self._operations(mine.operations, theirs.operations) for mine, theirs in zip(first, second)
        )
        return Window(tuple(second), self._values, self._framework) if equal else None

    def _operations(self, first: Sequence[Operation], second: Sequence[Operation]) -> bool:
        return all(self._operation(mine, theirs) for mine, theirs in zip(first, second))

    def _operation(self, first: Operation, second: Operation) -> bool:
        for mine, theirs in zip(first.framework, second.framework):
            if self._framework.setdefault(mine, theirs) != theirs:
                return False
        if not all(self._operand(mine, theirs) for mine, theirs in zip(first.operands, second.operands)):
            return False
        self._values.update(zip(first.results, second.results))
        return all(self._region(mine, theirs) for mine, theirs in zip(first.regions, second.regions))

    def _region(self, first: Region, second: Region) -> bool:
        self._values.update(zip(first.parameters, second.parameters))
        return self._operations(first.operations, second.operations) and all(
            self._operand(mine, theirs) for mine, theirs in zip(first.results, second.results)
        )

    def _operand(self, first: int, second: int) -> bool:
        known = self._values.get(first)
        if known is not None:
            return known == second
        if (first in self._inside[0]) != (second in self._inside[1]):
            return False
        if not self._made_alike(first, second):
            return False
        self._values[first] = second
        return True

    def _made_alike(self, first: int, second: int) -> bool:
        """Values read through lazy operations must be made by the same ones."""
        values = self._plan.module.values
        if values[first].type != values[second].type:
            return False
        makers = [self._plan.made_by.get(value) for value in (first, second)]
        mine, theirs = (
            maker if maker is not None and is_lazy(maker, self._plan.module) else None for maker in makers
        )
        if mine is None or theirs is None:
            return mine is theirs
        if first == second:
            return True
        same = _operation_signature(self._plan, mine)[:4] == _operation_signature(self._plan, theirs)[:4]  # type: ignore[index]  # both are elementwise, so have one
        return same and all(self._operand(a, b) for a, b in zip(mine.operands, theirs.operands))


def _made(groups: Iterable[Group]) -> set[int]:
    return {value for group in groups for value in group.shapes}
