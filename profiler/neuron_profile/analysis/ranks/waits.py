"""Time in collectives, apart: transfer, and waiting for the rank that joined last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neuron_profile.analysis.ranks.partial import CollectiveCalls, RankPartial
from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen


@frozen
class CollectiveCost:
    """Calls of one operation and size, over all groups.

    Attributes:
        transfer_ns: Of one rank, over all calls: what the rank that joined last took.
        waited_ns: Mean over the ranks: the rest of their time, for which they waited for the last.
    """

    operation: str
    input_bytes: int
    calls: int
    ranks: int
    transfer_ns: int
    waited_ns: float


@dataclass(frozen=True)
class _Stretches:
    """When a rank waited, and the place of the rank that each wait was for; (calls,) each."""

    begin_ns: Ints
    end_ns: Ints
    late: Ints


class Waits:
    """The waits of all ranks, by their place."""

    def __init__(self, ranks: int) -> None:
        self._stretches: list[list[_Stretches]] = [[] for _ in range(ranks)]

    def add_all(self, partials: Sequence[RankPartial]) -> tuple[CollectiveCost, ...]:
        """Take in the collectives of all ranks; the cost of each operation and size."""
        groups: defaultdict[str, list[tuple[int, CollectiveCalls]]] = defaultdict(list)
        for place, partial in enumerate(partials):
            for members, calls in partial.collectives.items():
                groups[members].append((place, calls))
        totals: defaultdict[tuple[str, int], list[float]] = defaultdict(lambda: [0, 0, 0, 0.0])
        for parts in groups.values():
            self._add_group(parts, totals)
        costs = [
            CollectiveCost(operation, size, int(row[0]), int(row[1]), int(row[2]), row[3])
            for (operation, size), row in totals.items()
        ]
        return tuple(sorted(costs, key=lambda cost: (-cost.transfer_ns - cost.waited_ns, cost.operation)))

    def within(self, windows: Sequence[tuple[int, int]]) -> tuple[Ints, Ints]:
        """What each rank waited in its window, and what others waited for it; the two have the same sum.

        Where a rank waits in several collectives at once, its time counts for the one that it joined first.

        Args:
            windows: Begin and length of each rank's window, in ns.
        """
        waited, waited_for = (np.zeros(len(windows), np.int64) for _ in range(2))
        for place, (begin, length) in enumerate(windows):
            if not self._stretches[place]:
                continue
            stretches = _joined(self._stretches[place])
            net = _uncovered_ns(stretches, begin, begin + length)
            waited[place] = net.sum()
            np.add.at(waited_for, stretches.late, net)
        return waited, waited_for

    def _add_group(
        self, parts: Sequence[tuple[int, CollectiveCalls]], totals: dict[tuple[str, int], list[float]]
    ) -> None:
        """The n-th call of a rank on a group meets the n-th of the others."""
        places = np.array([place for place, _ in parts])
        calls = min(len(each.taken_ns) for _, each in parts)
        if not calls:
            return
        taken = np.stack([each.taken_ns[:calls] for _, each in parts])
        transfer = taken.min(axis=0)
        waited, late = taken - transfer, places[taken.argmin(axis=0)]
        for (place, each), spent in zip(parts, waited):
            joined = each.joined_ns[:calls]
            self._stretches[place].append(_Stretches(joined, joined + spent, late))
        first = parts[0][1]
        for call in range(calls):
            row = totals[first.operation[call], int(first.input_bytes[call])]
            row[0] += 1
            row[1] = max(row[1], len(parts))
            row[2] += int(transfer[call])
            row[3] += float(waited[:, call].mean())


def _joined(stretches: Sequence[_Stretches]) -> _Stretches:
    """One with those of all groups, by their begin."""
    begin, end, late = (
        np.concatenate([getattr(each, name) for each in stretches]) for name in ("begin_ns", "end_ns", "late")
    )
    order = np.argsort(begin, kind="stable")
    return _Stretches(begin[order], end[order], late[order])


def _uncovered_ns(stretches: _Stretches, low: int, high: int) -> Ints:
    """Time of each stretch between two moments that the ones before it do not cover."""
    begin, end = np.clip(stretches.begin_ns, low, high), np.clip(stretches.end_ns, low, high)
    before = np.concatenate([[low], np.maximum.accumulate(end)[:-1]])
    net: Ints = np.maximum(0, end - np.maximum(begin, before))
    return net
