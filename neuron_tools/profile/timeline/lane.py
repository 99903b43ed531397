"""Reads a lane of the index: its windows and its spans, a range at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.timeline import lane_table
from neuron_tools.profile.timeline.blob import Blob
from neuron_tools.profile.timeline.lane_table import ABSENT, BLOCK_ARRAYS, LEVEL_ARRAYS, LaneTable


@frozen
class Spans:
    """Spans of a lane; every column of shape (spans,), integers.

    Attributes:
        name: Codes of the index's names.
        row: Row of the track's table.
    """

    start_ns: npt.NDArray[Any]
    duration_ns: npt.NDArray[Any]
    name: npt.NDArray[Any]
    row: npt.NDArray[Any]


@frozen
class LaneView:
    """Consecutive entries of a lane, each a window or, nearer by, a single span.

    Attributes:
        begin_ns: When each entry begins, int64, shape (entries,), ascending.
        window_ns: Length of an entry's window; 0 where entries are spans.
        first: Number in the lane of the first span of each entry and of what follows them, (entries + 1,);
            None where entries are spans.
        busy_ns: Duration of all spans before each entry and before what follows them, (entries + 1,).
        until_ns: When the last span of each entry ends, (entries,).
        longest_ns: Duration of each entry's longest span, (entries,).
        longest: Gives the longest spans of chosen entries, which are in ascending order.
    """

    begin_ns: Ints
    window_ns: int
    first: Ints | None
    busy_ns: Ints
    until_ns: Ints
    longest_ns: npt.NDArray[Any]
    longest: Callable[[Ints], Spans]


class Lane:
    """The spans of one track at one depth.

    Args:
        table: All lanes of the index.
        place: Its row in the table.

    Attributes:
        depth: The depth, counted from 0.
        spans: How many there are.
        start_ns, end_ns: Range that they cover.
    """

    def __init__(self, table: LaneTable, place: int, blob: Blob) -> None:
        lane: list[int] = table.lanes[place].tolist()
        self.depth, self.spans = lane[lane_table.DEPTH], lane[lane_table.SPANS]
        self.start_ns, self.end_ns = lane[lane_table.START_NS], lane[lane_table.END_NS]
        self._busy_ns = lane[lane_table.BUSY_NS]
        self._blocks = table.blocks[lane[lane_table.FIRST_BLOCK] : lane[lane_table.LAST_BLOCK]]
        self._levels = table.levels[lane[lane_table.FIRST_LEVEL] : lane[lane_table.LAST_LEVEL]]
        self._blob = blob

    def view(self, start_ns: int, end_ns: int, pixel_ns: float) -> LaneView | None:
        """What lies in a range, no finer than pixels of that length need; None if nothing does."""
        if end_ns <= self.start_ns or start_ns >= max(self.end_ns, self.start_ns + 1):
            return None
        level = self._level(pixel_ns)
        return self._spans_view(start_ns, end_ns) if level is None else self._windows(level, start_ns, end_ns)

    def between(self, start_ns: int, end_ns: int, limit: int) -> Spans:
        """The first spans that overlap a range, or start in it."""
        low, high = self._number_before(start_ns), self._number_at(end_ns)
        found = self.at(np.arange(low, min(high, low + limit + 1), dtype=np.int64))
        kept = (found.start_ns + found.duration_ns > start_ns) | (found.start_ns >= start_ns)
        first = int(np.argmax(kept)) if len(kept) and kept.any() else len(kept)
        chosen = slice(first, first + limit)
        return Spans(found.start_ns[chosen], found.duration_ns[chosen], found.name[chosen], found.row[chosen])

    def named(self, wanted: npt.NDArray[np.bool_], start_ns: int, end_ns: int, limit: int) -> Spans:
        """The first spans of a range whose names are wanted; `wanted` has a flag for each name."""
        low, high = self._number_before(start_ns), self._number_at(end_ns)
        found: list[Ints] = []
        for block, first in self._overlapping(low, high):
            chosen = slice(max(low - first, 0), high - first)
            hits = wanted[self._array(block, "name")[chosen]].nonzero()[0]
            found.append(hits[:limit] + first + chosen.start)
            if sum(map(len, found)) > limit:
                break
        spans = self.at(np.concatenate(found) if found else np.zeros(0, np.int64))
        inside = (spans.start_ns + spans.duration_ns >= start_ns).nonzero()[0][:limit]
        return Spans(spans.start_ns[inside], spans.duration_ns[inside], spans.name[inside], spans.row[inside])

    def at(self, numbers: Ints) -> Spans:
        """Spans by their number in the lane; numbers ascending."""
        start, duration, name, row = (np.empty(len(numbers), np.int64) for _ in range(4))
        for block, places, local in self._by_block(numbers):
            start[places] = self._array(block, "start")[local]
            start[places] += block[lane_table.BASE]
            duration[places] = self._array(block, "duration")[local]
            name[places] = self._array(block, "name")[local]
            row[places] = self._rows(block, local)
        return Spans(start, duration, name, row)

    def _rows(self, block: Sequence[int], local: Ints) -> Ints:
        """Rows of the table of spans by their number in a block."""
        rows, first_row = self._array(block, "row"), block[lane_table.FIRST_ROW]
        if block[lane_table.BLOCK_RUN] == ABSENT:
            own: Ints = rows[local] + np.int64(first_row)
            return own
        runs = self._array(block, "run")
        run = runs.searchsorted(local.astype(runs.dtype), side="right") - 1
        apart: Ints = rows[run] + (local - runs[run] + first_row)
        return apart

    def _by_block(self, numbers: Ints) -> list[tuple[list[int], slice, Ints]]:
        found = []
        for block, first in self._overlapping(int(numbers[0]), int(numbers[-1]) + 1) if len(numbers) else ():
            low, high = np.searchsorted(numbers, [first, first + block[lane_table.COUNT]]).tolist()
            if high > low:
                found.append((block, slice(low, high), numbers[low:high] - first))
        return found

    def _level(self, pixel_ns: float) -> list[int] | None:
        """The coarsest level whose windows are no longer than a pixel; None where all are longer."""
        fitting = np.flatnonzero(1 << self._levels[:, lane_table.SHIFT] <= pixel_ns)
        return self._levels[fitting[-1]].tolist() if len(fitting) else None

    def _windows(self, level: Sequence[int], start_ns: int, end_ns: int) -> LaneView | None:
        shift, base = level[lane_table.SHIFT], level[lane_table.BASE_WINDOW]
        window = self._column(level, "window")
        low = max(_search(window, (start_ns >> shift) - base + 1) - 2, 0)
        high = _search(window, ((end_ns - 1) >> shift) - base + 1)
        if high <= low:
            return None
        chosen = slice(low, high)
        aligned = (window[chosen].astype(np.int64) + base) << shift
        begin = aligned
        if low == 0 and begin[0] < self.start_ns:
            begin = aligned.copy()
            begin[0] = self.start_ns
        names = ("longest_start_ns", "longest_duration_ns", "longest_name", "longest_row")
        columns = [self._column(level, name)[chosen] for name in names]

        def longest(entries: Ints) -> Spans:
            start, duration, name, row = (column[entries] for column in columns)
            return Spans(start + aligned[entries], duration, name, row)

        return LaneView(
            begin,
            1 << shift,
            self._with_next(level, "first", low, high, self.spans),
            self._with_next(level, "busy_ns", low, high, self._busy_ns),
            self._column(level, "until_ns")[chosen] + aligned,
            columns[1],
            longest,
        )

    def _with_next(self, level: Sequence[int], name: str, low: int, high: int, total: int) -> Ints:
        values = self._column(level, name)
        chosen = values[low : high + 1].astype(np.int64)
        return np.append(chosen, total) if high == len(values) else chosen

    def _spans_view(self, start_ns: int, end_ns: int) -> LaneView | None:
        low, high = self._number_before(start_ns), self._number_at(end_ns)
        if high <= low:
            return None
        begin, duration = self._times(low, high)
        busy = np.zeros(len(begin) + 1, np.int64)
        np.cumsum(duration, out=busy[1:])

        def longest(entries: Ints) -> Spans:
            return self.at(entries + low)

        return LaneView(begin, 0, None, busy, begin + duration, duration, longest)

    def _times(self, low: int, high: int) -> tuple[Ints, npt.NDArray[Any]]:
        """Start and duration of spans from number `low` to before `high`."""
        starts, durations = [], []
        for block, first in self._overlapping(low, high):
            chosen = slice(max(low - first, 0), high - first)
            start = self._array(block, "start")[chosen].astype(np.int64)
            start += block[lane_table.BASE]
            starts.append(start)
            durations.append(self._array(block, "duration")[chosen])
        if len(starts) == 1:
            return starts[0], durations[0]
        return np.concatenate(starts), np.concatenate(durations)

    def _number_before(self, time_ns: int) -> int:
        """Number of the last span that starts at or before a time; 0 if none does."""
        return max(self._number_at(time_ns + 1) - 1, 0)

    def _number_at(self, time_ns: int) -> int:
        """Number of the first span that starts at or after a time."""
        place = int(np.searchsorted(self._blocks[:, lane_table.BASE], time_ns)) - 1
        if place < 0:
            return 0
        block: list[int] = self._blocks[place].tolist()
        within = _search(self._array(block, "start"), time_ns - block[lane_table.BASE])
        return block[lane_table.FIRST] + within

    def _overlapping(self, low: int, high: int) -> list[tuple[list[int], int]]:
        """Blocks that hold spans of a range of numbers, each with the number of its first span."""
        firsts = self._blocks[:, lane_table.FIRST]
        first = max(int(np.searchsorted(firsts, low, side="right")) - 1, 0)
        last = int(np.searchsorted(firsts, high))
        return [(block, block[lane_table.FIRST]) for block in self._blocks[first:last].tolist()]

    def _array(self, block: Sequence[int], name: str) -> npt.NDArray[Any]:
        place = BLOCK_ARRAYS[name]
        return self._blob.numbers(*block[place : place + 3])

    def _column(self, level: Sequence[int], name: str) -> npt.NDArray[Any]:
        place = LEVEL_ARRAYS[name]
        return self._blob.numbers(*level[place : place + 3])


def _search(values: npt.NDArray[Any], needle: int) -> int:
    """`searchsorted` of one number, without converting the array to the number's type."""
    limits = np.iinfo(values.dtype)
    if needle <= limits.min:
        return 0
    if needle > limits.max:
        return len(values)
    return int(np.searchsorted(values, values.dtype.type(needle)))
