"""Unions of time intervals: which spans overlap or touch, joined into islands.

The kernel of every busy time. Works on whole arrays; `island_store` has those of more than fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from neuron_tools.arrays import Ints, Mask
from neuron_tools.frozen import frozen

_LARGEST = 1 << 62


@frozen
class Islands:
    """Half-open intervals [start, end) in order of time that neither overlap nor touch; int64, shape (n,)."""

    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.start)

    @property
    def total(self) -> int:
        """Sum of the lengths."""
        return int(self.end.sum() - self.start.sum())

    def without_empty(self) -> Islands:
        """Without intervals of no length."""
        kept = self.end > self.start
        return self if kept.all() else Islands(self.start[kept], self.end[kept])

    def before(self, time: int) -> tuple[Islands, Islands]:
        """The intervals that end before a time, and the others."""
        cut = int(np.searchsorted(self.end, time))
        return Islands(self.start[:cut], self.end[:cut]), Islands(self.start[cut:], self.end[cut:])


NO_ISLANDS = Islands(np.zeros(0, np.int64), np.zeros(0, np.int64))


def union(start: Ints, end: Ints) -> Islands:
    """The islands of spans in any order. O(n) for spans in order of start, else O(n log n)."""
    if not len(start):
        return NO_ISLANDS
    if np.any(start[1:] < start[:-1]):
        order = np.argsort(start, kind="stable")  # fast on a few ordered runs, such as one per engine
        start, end = start[order], end[order]
    busy_until = np.maximum.accumulate(end)
    return _islands(start, busy_until, np.append(True, start[1:] > busy_until[:-1]))


def merged(parts: Iterable[Islands]) -> Islands:
    """The union of several islands."""
    present = [part for part in parts if len(part)]
    if len(present) == 1:
        return present[0]
    if not present:
        return NO_ISLANDS
    return union(np.concatenate([p.start for p in present]), np.concatenate([p.end for p in present]))


def union_by_group(group: Ints, start: Ints, end: Ints) -> dict[int, Islands]:
    """The islands of each group of spans, groups in ascending order.

    Args:
        group: int64, shape (n,), not negative.
        start: int64, shape (n,).
        end: int64, shape (n,), >= start.
    """
    if not len(group):
        return {}
    order = _order(group, start)
    group, start, end = group[order], start[order], end[order]
    changes = np.append(True, group[1:] != group[:-1])
    busy_until = _running_end(start, end, changes)
    opens = changes | np.append(True, start[1:] > busy_until[:-1])
    islands = _islands(start, busy_until, opens)
    first = np.flatnonzero(changes[opens])
    stops = np.append(first[1:], len(islands))
    return {
        int(number): Islands(islands.start[begin:stop], islands.end[begin:stop])
        for number, begin, stop in zip(group[changes].tolist(), first.tolist(), stops.tolist())
    }


def _islands(start: Ints, busy_until: Ints, opens: Mask) -> Islands:
    first = np.flatnonzero(opens)
    last = np.append(first[1:], len(start)) - 1
    return Islands(start[first], busy_until[last])


def _order(group: Ints, start: Ints) -> Ints:
    """Rows by group, then start: by one key where group and time fit into 63 bits together."""
    lowest = int(start.min())
    width = int(start.max()) - lowest + 1
    if (int(group.max()) + 1) * width >= _LARGEST:
        return np.lexsort((start, group))
    return np.argsort(group * width + (start - lowest), kind="stable")


def _running_end(start: Ints, end: Ints, changes: Mask) -> Ints:
    """Latest end so far within each group.

    One running maximum serves all groups: each group is lifted above all times of the group before.
    """
    lowest = int(start.min())
    width = int(end.max()) - lowest + 1
    rank = np.cumsum(changes) - 1
    if (int(rank[-1]) + 1) * width >= _LARGEST:
        parts = np.split(end, np.flatnonzero(changes)[1:])
        return np.concatenate([np.maximum.accumulate(part) for part in parts])
    lift = rank * width - lowest
    lifted: Ints = np.maximum.accumulate(end + lift)
    return lifted - lift


def at_most(islands: Islands, limit: int) -> Islands:
    """At most `limit` (at least 1) islands: the shortest gaps are closed, the later of equal ones first."""
    if len(islands) <= limit:
        return islands
    gap = islands.start[1:] - islands.end[:-1]
    longest = np.argsort(-gap, kind="stable")[: limit - 1]
    opens = np.zeros(len(islands), np.bool_)
    opens[0] = True
    opens[longest + 1] = True
    return _islands(islands.start, islands.end, opens)
