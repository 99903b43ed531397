"""At which depth each span of a track stands, so that spans of one depth never overlap.

Each span, in order of start, takes the first depth whose last span has ended. So an enclosed span stands
below the one that encloses it, and there are no more depths than spans are open at once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import types

from neuron_tools.arrays import Ints
from neuron_tools.compiled import compiled_as

Depths = npt.NDArray[np.int32]
_NEVER = np.iinfo(np.int64).min


class DepthAssigner:
    """Gives depths to the spans of one track, segment after segment; remembers what is open between them."""

    def __init__(self) -> None:
        self._ends = np.full(
            2, _NEVER
        )  # a binary tree: the least of the ends below each node, depths as leaves

    def assign(self, start_ns: Ints, end_ns: Ints) -> Depths:
        """Depth of each span.

        Args:
            start_ns: int64, shape (spans,), ascending, and not below the last segment's; of equal ones the
                longest comes first, so that it stands above the others.
            end_ns: int64, shape (spans,), not below the starts.

        Returns:
            int32, shape (spans,), counted from 0.
        """
        depths = np.empty(len(start_ns), np.int32)
        done = 0
        while (done := _take_depths(start_ns, end_ns, done, self._ends, depths)) < len(start_ns):
            self._ends = _doubled(self._ends)
        return depths


def _doubled(ends: Ints) -> Ints:
    """The tree with room for twice as many depths."""
    depths = len(ends) // 2
    level = np.concatenate([ends[depths:], np.full(depths, _NEVER)])
    levels = [level]
    while len(level) > 1:
        level = level.reshape(-1, 2).min(axis=1)
        levels.insert(0, level)
    return np.concatenate([np.full(1, _NEVER), *levels])


@compiled_as(
    types.int64(
        types.Array(types.int64, 1, "A", readonly=True),
        types.Array(types.int64, 1, "A", readonly=True),
        types.int64,
        types.int64[::1],
        types.int32[::1],
    )
)
def _take_depths(start_ns: Ints, end_ns: Ints, first: int, ends: Ints, depths: Depths) -> int:
    """Give depths to spans from `first` on, until one finds none free; returns that one's number.

    Args:
        ends: The tree of `DepthAssigner`, brought up to date.
        depths: int32, shape (spans,): receives the depth of each span.
    """
    leaves = len(ends) // 2
    for span in range(first, len(start_ns)):
        if ends[1] > start_ns[span]:
            return span
        node = 1
        while node < leaves:
            node *= 2
            if ends[node] > start_ns[span]:
                node += 1
        depths[span] = node - leaves
        ends[node] = end_ns[span]
        while node > 1:
            node //= 2
            ends[node] = min(ends[2 * node], ends[2 * node + 1])
    return len(start_ns)
