"""Sets of spans: their union, and how much of one lies in another. All times in ns, vectorised."""

from __future__ import annotations

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.profile.reader import Profile

Union = tuple[Ints, Ints]
"""Starts and ends of spans that do not overlap, by start."""


def union(starts: Ints, ends: Ints) -> Union:
    """Spans joined where they overlap or touch; given in any order."""
    if not len(starts):
        return starts, ends
    if np.any(starts[1:] < starts[:-1]):
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
    reached = np.maximum.accumulate(ends)
    first = np.concatenate([[True], starts[1:] > reached[:-1]])
    last = np.concatenate([np.flatnonzero(first)[1:] - 1, [len(starts) - 1]])
    return starts[first], reached[last]


def process_union(profile: Profile, query: str, process: int) -> Union:
    """The union of the spans (`start_ns`, `end_ns`) that a query finds for a process, its one parameter."""
    rows = profile.query(query, [process])
    return union(*(rows[name].to_numpy().astype(np.int64) for name in ("start_ns", "end_ns")))


def length_ns(spans: Union) -> int:
    """Time that a union covers."""
    return int((spans[1] - spans[0]).sum())


def overlap_ns(one: Union, other: Union) -> int:
    """Length of the common part of two unions."""
    if not len(one[0]) or not len(other[0]):
        return 0
    return int(covered_before(other, one[1]).sum() - covered_before(other, one[0]).sum())


def covered_before(spans: Union, times: Ints) -> Ints:
    """How much of a union lies before each time.

    Returns:
        (times,) int64 ns.
    """
    starts, ends = spans
    if not len(starts):
        return np.zeros(len(times), np.int64)
    until = np.concatenate([[0], np.cumsum(ends - starts)])
    index = np.maximum(np.searchsorted(starts, times, side="right") - 1, 0)
    inside = np.clip(times - starts[index], 0, ends[index] - starts[index])
    covered: Ints = until[index] + inside
    return covered


def gaps(spans: Union) -> Union:
    """What lies between the spans of a union."""
    return spans[1][:-1], spans[0][1:]
