"""Unions of time intervals: which spans overlap or touch, joined into islands.

The kernel of every busy time. Whole arrays at once, O(n log n); a stream of batches in memory that grows
with the islands, not with the spans.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
_MERGE_ROWS = 1 << 22


@dataclass(frozen=True)
class Intervals:
    """Half-open intervals [start, end) of several groups; int64, shape (n,) each."""

    group: Ints
    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.group)

    @property
    def total(self) -> int:
        """Sum of the lengths."""
        return int((self.end - self.start).sum())

    def take(self, rows: npt.NDArray[np.bool_] | Ints | slice) -> Intervals:
        """Some of the intervals."""
        return Intervals(self.group[rows], self.start[rows], self.end[rows])

    def totals(self) -> dict[int, int]:
        """Sum of the lengths of each group."""
        groups, which = np.unique(self.group, return_inverse=True)
        sums = np.zeros(len(groups), np.int64)
        np.add.at(sums, which, self.end - self.start)
        return dict(zip(groups.tolist(), sums.tolist()))

    def without_empty(self) -> Intervals:
        """Without intervals of no length."""
        return self.take(self.end > self.start)


def empty() -> Intervals:
    """No interval."""
    none = np.zeros(0, np.int64)
    return Intervals(none, none, none)


def joined(parts: list[Intervals]) -> Intervals:
    """All intervals of the parts, one after the other."""
    if not parts:
        return empty()
    return Intervals(
        np.concatenate([part.group for part in parts]),
        np.concatenate([part.start for part in parts]),
        np.concatenate([part.end for part in parts]),
    )


def ungrouped(intervals: Intervals) -> Intervals:
    """The same intervals, all in group 0."""
    return Intervals(np.zeros(len(intervals), np.int64), intervals.start, intervals.end)


def union(spans: Intervals) -> Intervals:
    """Islands of each group: spans that overlap or touch, joined; sorted by group, then start.

    The union of unions is the union of all: batches may be joined in any order.
    """
    if not len(spans):
        return spans
    spans = _sorted(spans)
    group, start = spans.group, spans.start
    changes = np.empty(len(group), np.bool_)
    changes[0] = True
    np.not_equal(group[1:], group[:-1], out=changes[1:])
    busy_until = _running_end(spans, changes)
    opens = changes.copy()
    opens[1:] |= start[1:] > busy_until[:-1]
    first = np.flatnonzero(opens)
    last = np.append(first[1:], len(group)) - 1
    return Intervals(group[first], start[first], busy_until[last])


def _sorted(spans: Intervals) -> Intervals:
    group, start = spans.group, spans.start
    rises = group[1:] > group[:-1]
    if np.all(rises | ((group[1:] == group[:-1]) & (start[1:] >= start[:-1]))):
        return spans
    if group[0] == group[-1] and not rises.any() and np.all(group == group[0]):
        return spans.take(np.argsort(start))
    return spans.take(np.lexsort((start, group)))


def _running_end(spans: Intervals, changes: npt.NDArray[np.bool_]) -> Ints:
    """Latest end so far within each group.

    One running maximum serves all groups: each group is lifted above all times of the group before.
    """
    lowest = int(spans.start.min())
    width = int(spans.end.max()) - lowest + 1
    rank = np.cumsum(changes) - 1
    if (int(rank[-1]) + 1) * width >= 1 << 62:
        return _running_end_by_group(spans, np.flatnonzero(changes))
    lift = rank * width - lowest
    lifted: Ints = np.maximum.accumulate(spans.end + lift)
    return lifted - lift


def _running_end_by_group(spans: Intervals, first: Ints) -> Ints:
    """The same one group after the other, where lifted times would not fit 64 bits."""
    result = np.empty(len(spans), np.int64)
    for begin, stop in zip(first, np.append(first[1:], len(spans))):
        np.maximum.accumulate(spans.end[begin:stop], out=result[begin:stop])
    return result


class IntervalUnion:
    """The union of a stream of batches."""

    def __init__(self) -> None:
        self._parts: list[Intervals] = []
        self._rows = 0

    def add(self, group: Ints, start: Ints, end: Ints) -> None:
        """Take in a batch of spans."""
        self.add_intervals(Intervals(group, start, end))

    def add_intervals(self, spans: Intervals) -> None:
        """Take in a batch of spans."""
        islands = union(spans)
        self._parts.append(islands)
        self._rows += len(islands)
        if self._rows > _MERGE_ROWS:
            self._rows = len(self.islands()) // 2  # merge again only after as much again has come

    def islands(self) -> Intervals:
        """All islands so far, sorted by group and start."""
        if len(self._parts) != 1:
            self._parts = [union(joined(self._parts))]
        return self._parts[0]


def at_most(islands: Intervals, limit: int) -> Intervals:
    """At most `limit` islands per group: the shortest gaps of a group are closed until it fits.

    Args:
        islands: Sorted by group and start, disjoint within a group (as `union` returns them).
        limit: At least 1.
    """
    if not len(islands):
        return islands
    same = islands.group[1:] == islands.group[:-1]
    gap = np.where(same, islands.start[1:] - islands.end[:-1], 0)
    # Rank the gaps of each group from the longest: the first limit - 1 of them stay open.
    order = np.lexsort((-gap, islands.group[1:]))
    order = order[same[order]]
    of_group = islands.group[1:][order]
    begins = np.flatnonzero(np.append(True, of_group[1:] != of_group[:-1])) if len(order) else order
    rank = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
    stays_open = np.append(True, ~same)
    stays_open[1:][order[rank < limit - 1]] = True
    first = np.flatnonzero(stays_open)
    last = np.append(first[1:], len(islands)) - 1
    return Intervals(islands.group[first], islands.start[first], islands.end[last])
