"""Exposed time: how much of the device's time each span is to blame for.

Engines and DMAs work at the same time, so durations of spans add up to more than the time that passed.
Exposed time divides every moment among what kept the device busy in it, so that it adds up to exactly the
time in which anything was active. Priorities: computing hides data movement, data movement hides control.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Floats, Ints
from neuron_tools.frozen import frozen

CONTROL_OPCODES = (
    "NOP", "SET_ORDERING_MODE", "EVENT_SEMAPHORE", "EVENT_SEMAPHORE_RANGE_CLEAR", "NOTIFY", "COMPARE_BRANCH",
    "DRAIN", "MODIFY_POOL_CONFIG", "DMA_TRIGGER", "PSEUDO_DMA_TRIGGER",
)  # fmt: skip
"""Instructions that order others and do no work of their own: the set-up opcodes that the published metric
total_exec_time leaves out, and those that start a DMA."""


@dataclass(frozen=True)
class Spans:
    """Spans of one priority: start and end in ns, one entry per span."""

    start_ns: Ints
    end_ns: Ints


@frozen
class OrderedSpans:
    """Spans of all tiers behind each other, and the orders in which a sweep meets them; arrays of (spans,).

    Attributes:
        start_ns, end_ns: int64; every span has a length.
        tier: int8, 0 the highest priority.
        by_start, by_end: The spans by ascending start, and by ascending end.
        tiers: How many there are.
    """

    start_ns: Ints
    end_ns: Ints
    tier: npt.NDArray[np.int8]
    by_start: Ints
    by_end: Ints
    tiers: int

    @classmethod
    def of(cls, tiers: Sequence[Spans]) -> OrderedSpans:
        """Spans by falling priority, ordered in O(n log n)."""
        start, end = (
            np.concatenate([getattr(tier, name) for tier in tiers]) for name in ("start_ns", "end_ns")
        )
        number = np.repeat(np.arange(len(tiers), dtype=np.int8), [len(tier.start_ns) for tier in tiers])
        by_start, by_end = (np.argsort(times, kind="stable") for times in (start, end))
        return cls(start, end, number, by_start, by_end, len(tiers))


def exposed_ns(tiers: Sequence[Spans]) -> list[Floats]:
    """Exposed time of every span of one NeuronCore.

    A moment belongs to the first tier that has a span in it and is divided equally among that tier's spans.
    O(n log n) in the number of spans.

    Args:
        tiers: Spans by falling priority.

    Returns:
        Per tier, the exposed ns of each span; the sum of all is the length of the union of all spans.
    """
    edges = np.concatenate([edge for tier in tiers for edge in (tier.start_ns, tier.end_ns)])
    moments, position = np.unique(edges, return_inverse=True)
    if len(moments) < 2:
        return [np.zeros(len(tier.start_ns)) for tier in tiers]
    free = np.ones(len(moments) - 1, bool)
    length_ns = np.diff(moments)
    exposed = []
    taken = 0
    for tier in tiers:
        first, last = np.split(position[taken : taken + 2 * len(tier.start_ns)], 2)
        taken += 2 * len(tier.start_ns)
        active = _active_count(first, last, len(moments))
        share = np.divide(length_ns, active, out=np.zeros(len(length_ns)), where=free & (active > 0))
        until = np.concatenate([[0.0], np.cumsum(share)])
        exposed.append(until[last] - until[first])
        free &= active == 0
    return exposed


def _active_count(first: Ints, last: Ints, moments: int) -> Ints:
    """Number of spans in each interval between neighbouring moments."""
    change = np.bincount(first, minlength=moments) - np.bincount(last, minlength=moments)
    return np.cumsum(change)[:-1]
