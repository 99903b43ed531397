"""Differences of layers that are alike, told as one: a model's layers mostly change all together."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from neuron_profile.analysis.comparison.difference import Delta, find_reasons
from neuron_profile.analysis.comparison.operations import (
    COUNTER_NAMES,
    Counters,
    OperationKey,
    OperationTotal,
)
from neuron_tools.frozen import frozen

_NUMBER = re.compile(r"(?<=[/.])\d+(?=[/.]|$)")
ANY = "*"


@frozen
class LayersDelta:
    """One operation of so many modules that differ by a number, which is `*` in the module's path."""

    delta: Delta
    modules: int


def join_layers(deltas: Iterable[Delta]) -> tuple[LayersDelta, ...]:
    """The same differences, those of numbered layers joined, by falling size; their sum stays the same.

    Layers of which some were added, removed or renamed are told apart from those that changed.
    """
    groups: defaultdict[tuple[OperationKey, str], list[Delta]] = defaultdict(list)
    for delta in deltas:
        key = delta.key
        module = _NUMBER.sub(ANY, key.module)
        groups[OperationKey(module, key.operation, key.backward), delta.change].append(delta)
    joined = [
        LayersDelta(group[0] if len(group) == 1 else _joined(key, group), len(group))
        for (key, _), group in groups.items()
    ]
    return tuple(sorted(joined, key=lambda each: (-abs(each.delta.delta_ns), each.delta.key)))


def _joined(key: OperationKey, group: Sequence[Delta]) -> Delta:
    old = OperationTotal(sum(delta.base_ns for delta in group), _sum([delta.base for delta in group]))
    new = OperationTotal(sum(delta.new_ns for delta in group), _sum([delta.new for delta in group]))
    first = group[0]
    return Delta(
        key, first.change, old.device_ns, new.device_ns, old.counters, new.counters,
        find_reasons(old, new) if first.reasons else (), first.file, first.line,
        first.library_file, first.library_line,
    )  # fmt: skip


def _sum(counters: Sequence[Counters]) -> Counters:
    return Counters(**{name: sum(getattr(each, name) for each in counters) for name in COUNTER_NAMES})
