"""Compiled kernel of exposed time: one sweep over all starts and ends of a stretch of time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Floats, Ints
from neuron_tools.compiled import compiled


@compiled
def add_exposed(
    start: Ints, end: Ints, tier: npt.NDArray[np.int8], owner: Ints,
    by_start: Ints, by_end: Ints, tiers: int, exposed: Floats,
) -> None:  # fmt: skip
    """Divide the time in which anything is active among owners.

    A moment belongs to the first tier with an active span, and is divided equally among that tier's spans.

    Args:
        start, end: (spans,) int64 ns; every span has a length.
        tier: (spans,) its priority, 0 the highest.
        owner: (spans,) places in `exposed`.
        by_start, by_end: (spans,) orders of the spans by start, and by end.
        exposed: (owners,) float64 ns; gets what each has added.
    """
    active = np.zeros(tiers, np.int64)
    passed = np.zeros(tiers, np.float64)
    before = np.empty(len(start), np.float64)
    first = last = 0
    now = start[by_start[0]] if len(start) else 0
    while last < len(start):
        moment = end[by_end[last]]
        if first < len(start) and start[by_start[first]] < moment:
            moment = start[by_start[first]]
        if moment > now:
            for each in range(tiers):
                if active[each] > 0:
                    passed[each] += (moment - now) / active[each]
                    break
            now = moment
        while last < len(start) and end[by_end[last]] == now:
            span = by_end[last]
            exposed[owner[span]] += passed[tier[span]] - before[span]
            active[tier[span]] -= 1
            last += 1
        while first < len(start) and start[by_start[first]] == now:
            span = by_start[first]
            before[span] = passed[tier[span]]
            active[tier[span]] += 1
            first += 1
