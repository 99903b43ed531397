"""At which depth each span of a track stands, so that spans of one depth never overlap.

Spans come in order of start, in segments; what is still open at a segment's end is remembered. A track
whose spans do not overlap, which is nearly every engine's, costs two comparisons a span.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.profile.timeline.scan import Ints

Depths = npt.NDArray[np.int32]
_NEVER = np.iinfo(np.int64).min


class DepthAssigner:
    """Gives depths to the spans of one track, segment after segment.

    Args:
        nested: Whether overlapping spans are meant to contain each other, each one depth below what contains
            it; those that do not stand where there is room. Otherwise overlapping spans take depths in turn.
    """

    def __init__(self, nested: bool) -> None:
        self._nested = nested
        self._open: list[int] = []  # by depth: the end of the last span there

    def assign(self, start_ns: Ints, duration_ns: Ints) -> Depths:
        """Depth of each span.

        Args:
            start_ns: int64, shape (spans,), ascending; equal starts have the longest first.
            duration_ns: int64, shape (spans,).

        Returns:
            int32, shape (spans,), counted from 0.
        """
        depths = np.zeros(len(start_ns), np.int32)
        if not len(start_ns):
            return depths
        end = start_ns + duration_ns
        apart = self._apart(start_ns, end)
        if not apart.all():
            rows = np.flatnonzero(~apart)
            depths[rows] = self._overlapping(start_ns[rows], end[rows])
        self._remember(depths, end)
        return depths

    def _apart(self, start: Ints, end: Ints) -> npt.NDArray[np.bool_]:
        """Spans that overlap no other: all before have ended, and it ends before the next starts."""
        latest = np.maximum.accumulate(end)
        before = np.concatenate([[max(self._open, default=_NEVER)], latest[:-1]])
        np.maximum(before, before[0], out=before)
        free = start >= before
        alone: npt.NDArray[np.bool_] = free.copy()
        alone[:-1] &= free[1:]
        return alone

    def _overlapping(self, start: Ints, end: Ints) -> Depths:
        held = [(depth, last) for depth, last in enumerate(self._open) if last > start[0]]
        if not self._nested:
            return _in_turn(start, end, held)
        depths, is_free = _enclosing_depths(start, end, held)
        if is_free.all():
            return depths
        group = _groups(start, end, max((last for _, last in held), default=_NEVER))
        crossing = np.bincount(group, ~is_free)[group] > 0
        rows = np.flatnonzero(crossing)
        held = held if crossing[0] else []
        depths[rows] = _first_free(start[rows], end[rows], held)
        return depths

    def _remember(self, depths: Depths, end: Ints) -> None:
        self._open += [_NEVER] * (int(depths.max()) + 1 - len(self._open))
        if len(self._open) == 1:
            self._open[0] = max(self._open[0], int(end.max()))
            return
        latest = np.full(len(self._open), _NEVER, np.int64)
        np.maximum.at(latest, depths, end)
        self._open = np.maximum(latest, self._open).tolist()


def _groups(start: Ints, end: Ints, open_until_ns: int) -> Ints:
    """Numbers of the stretches between idle times that spans belong to; the first is 0, ascending."""
    latest = np.maximum(np.maximum.accumulate(end), open_until_ns)
    opening = start[1:] >= latest[:-1]
    return np.concatenate([[0], np.cumsum(opening)])


def _enclosing_depths(
    start: Ints, end: Ints, held: list[tuple[int, int]]
) -> tuple[Depths, npt.NDArray[np.bool_]]:
    """Depth as the number of spans open at each start, and which spans nothing else of that depth overlaps.

    Spans of no duration enclose nothing. `held` are depth and end of those that are open before the first.
    """
    lasting = end > start
    ends = np.sort(np.concatenate([np.array([last for _, last in held], np.int64), end[lasting]]))
    begun = len(held) + np.cumsum(lasting) - lasting
    depths: Depths = (begun - np.searchsorted(ends, start, side="right")).astype(np.int32)
    return depths, _free_spans(start, end, depths, held)


def _free_spans(start: Ints, end: Ints, depths: Depths, held: list[tuple[int, int]]) -> npt.NDArray[np.bool_]:
    """Spans that start after the one before them at their depth has ended."""
    order = np.argsort(depths.astype(np.uint16), kind="stable")  # a radix sort
    sorted_depth = depths[order]
    before = np.full(len(start), _NEVER, np.int64)
    before[1:] = np.where(sorted_depth[1:] == sorted_depth[:-1], end[order][:-1], _NEVER)
    first = np.searchsorted(sorted_depth, [depth for depth, _ in held])
    for place, (depth, last) in zip(first.tolist(), held):
        if place < len(order) and sorted_depth[place] == depth:
            before[place] = last
    is_free = np.empty(len(start), np.bool_)
    is_free[order] = start[order] >= before
    return is_free


def _first_free(start: Ints, end: Ints, held: list[tuple[int, int]]) -> Depths:
    """The lowest free depth, span by span: for the few that neither enclose each other nor come in turn."""
    ends = [_NEVER] * (max((depth for depth, _ in held), default=-1) + 1)
    for depth, last in held:
        ends[depth] = last
    depths = np.zeros(len(start), np.int32)
    for row, (begin, finish) in enumerate(zip(start.tolist(), end.tolist())):
        depth = next((place for place, last in enumerate(ends) if last <= begin), len(ends))
        if depth == len(ends):
            ends.append(_NEVER)
        ends[depth] = finish
        depths[row] = depth
    return depths


def _in_turn(start: Ints, end: Ints, held: list[tuple[int, int]]) -> Depths:
    """Depths in turn among spans that overlap without idle time between them.

    Where at most n spans are open at once, the i-th can take the depth of the (i - n)-th to end: that one has
    ended when it starts. So each span points to an earlier one, or to a depth of its own among the first n;
    following the pointers by doubling takes O(spans x log spans).
    """
    start = np.concatenate([np.full(len(held), start[0] - 1, np.int64), start])
    end = np.concatenate([np.array([last for _, last in held], np.int64), end])
    end = np.maximum(end, start + 1)  # one of no duration takes a depth too
    place = np.arange(len(start))
    by_end = np.argsort(end, kind="stable")
    open_at = place + 1 - np.searchsorted(end[by_end], start, side="right")
    group = _groups(start, end, _NEVER)
    first = np.flatnonzero(np.diff(group, prepend=-1))
    most = np.maximum.reduceat(open_at, first)[group]
    local = place - first[group]
    pointer = np.where(local < most, place, by_end[np.maximum(place - most, 0)])
    while not np.array_equal(following := pointer[pointer], pointer):
        pointer = following
    depths: Depths = local[pointer].astype(np.int32)
    if held:
        taken = [depth for depth, _ in held]
        highest = max(max(taken), int(depths.max())) + 1
        names = np.array([*taken, *(depth for depth in range(highest) if depth not in taken)], np.int32)
        depths = np.where(group == 0, names[depths], depths)
    return depths[len(held) :]
