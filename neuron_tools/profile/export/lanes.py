"""Lanes: spans of one track that overlap are set side by side, so that none is lost or cut.

A trace viewer takes a track for a stack: a span that starts inside another and ends after it would be cut
at the other's end. Lanes of engines and DMA queues hold spans that do not touch at all: they are the depths
of the timeline (`timeline.depths`). Nested lanes hold spans that contain each other (host calls, modules).
Both take spans in order of start time, in batches, and remember between batches what is still open.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints


class NestedLanes:
    """Puts each span into the first lane where it lies wholly inside, or wholly after, what is open there."""

    def __init__(self) -> None:
        self._open_ends: list[list[int]] = [[]]

    def assign(self, start_ns: Ints, end_ns: Ints) -> npt.NDArray[np.int32]:
        """Lane of each span; spans ordered by start ascending, then end descending.

        Returns:
            int32, shape (spans,), lanes counted from 0.
        """
        if len(start_ns) == 0:
            return np.zeros(0, np.int32)
        held = [end for end in self._open_ends[0] if end > start_ns[0]]
        if len(self._open_ends) == 1 and _nests(
            np.concatenate([np.full(len(held), start_ns[0] - 1), start_ns]),
            np.concatenate([np.array(held, np.int64), end_ns]),
        ):
            still_open = np.concatenate([np.array(held, np.int64), end_ns])
            self._open_ends[0] = still_open[still_open > start_ns[-1]].tolist()
            return np.zeros(len(start_ns), np.int32)
        pairs = zip(start_ns.tolist(), end_ns.tolist(), strict=True)
        return np.array([self._place(start, end) for start, end in pairs], np.int32)

    def _place(self, start: int, end: int) -> int:
        for lane, open_ends in enumerate(self._open_ends):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            if not open_ends or open_ends[-1] >= end:
                open_ends.append(end)
                return lane
        self._open_ends.append([end])
        return len(self._open_ends) - 1


def nested_event_order(start_ns: Ints, end_ns: Ints) -> Ints:
    """The order in which begins and ends of properly nested spans come in time.

    At one instant: first ends, innermost first; then begins, outermost first; a span of no length ends
    straight after it begins.

    Args:
        start_ns: int64, shape (spans,), ascending; equal starts have the outer span first.
        end_ns: int64, shape (spans,).

    Returns:
        int64, shape (2 x spans,): i for the begin of span i, spans + i for its end.
    """
    row = np.arange(len(start_ns))
    instant = start_ns == end_ns
    time = np.concatenate([start_ns, end_ns])
    is_begin_like = np.concatenate([np.ones(len(row), np.bool_), instant])
    rank = np.concatenate([2 * row, np.where(instant, 2 * row + 1, -row)])
    return np.lexsort((rank, is_begin_like, time))


def _nests(start_ns: Ints, end_ns: Ints) -> bool:
    """Whether no two spans overlap without one containing the other."""
    count = len(start_ns)
    order = nested_event_order(start_ns, end_ns)
    step = np.where(order < count, 1, -1)
    depth = np.cumsum(step)
    depth_of = np.empty(2 * count, np.int64)
    depth_of[order] = np.where(order < count, depth, depth + 1)
    return bool(np.array_equal(depth_of[:count], depth_of[count:]))
