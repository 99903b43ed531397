"""Reads a lane of the index: its windows and its spans, a range at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.profile.timeline.blob import Blob
from neuron_tools.profile.timeline.scan import Ints


@dataclass(frozen=True, slots=True)
class LaneView:
    """Consecutive entries of a lane, each a window or, nearer by, a single span.

    Attributes:
        begin_ns: When each entry begins, int64, shape (entries,), ascending.
        window_ns: Length of an entry's window; 0 where entries are spans.
        first: Number in the lane of the first span of each entry and of what follows them, (entries + 1,).
        busy_ns: Duration of all spans before each entry and before what follows them, (entries + 1,).
        until_ns: When the last span of each entry ends, (entries,).
        longest, longest_start_ns, longest_duration_ns, longest_name: Each entry's longest span, (entries,).
    """

    begin_ns: Ints
    window_ns: int
    first: Ints
    busy_ns: Ints
    until_ns: Ints
    longest: Ints
    longest_start_ns: Ints
    longest_duration_ns: Ints
    longest_name: Ints


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans of a lane; every column int64, shape (spans,)."""

    number: Ints
    start_ns: Ints
    duration_ns: Ints
    name: Ints


class Lane:
    """The spans of one track at one depth.

    Attributes:
        depth: The depth, counted from 0.
        spans: How many there are.
        start_ns, end_ns: Range that they cover.
    """

    def __init__(self, depth: int, stored: Mapping[str, Any], blob: Blob) -> None:
        self.depth = depth
        self.spans: int = stored["spans"]
        self.start_ns: int = stored["start_ns"]
        self.end_ns: int = stored["end_ns"]
        self._busy_ns: int = stored["busy_ns"]
        self._blocks: list[dict[str, Any]] = stored["blocks"]
        self._levels: list[dict[str, Any]] = stored["levels"]
        self._blob = blob
        self._block_start = np.array([block["base"] for block in self._blocks], np.int64)
        self._block_first = np.cumsum([0, *(block["spans"] for block in self._blocks)])

    def view(self, start_ns: int, end_ns: int, pixel_ns: float) -> LaneView | None:
        """What lies in a range, no finer than pixels of that length need; None if nothing does."""
        if end_ns <= self.start_ns or start_ns >= max(self.end_ns, self.start_ns + 1):
            return None
        level = self._level(pixel_ns)
        return self._spans_view(start_ns, end_ns) if level is None else self._windows(level, start_ns, end_ns)

    def between(self, start_ns: int, end_ns: int, limit: int) -> Spans:
        """The first spans that overlap a range, or start in it."""
        low, high = self._number_before(start_ns), self._number_at(end_ns)
        found = self._range(low, min(high, low + limit + 1))
        kept = (found.start_ns + found.duration_ns > start_ns) | (found.start_ns >= start_ns)
        first = int(np.argmax(kept)) if len(kept) and kept.any() else len(kept)
        chosen = slice(first, first + limit)
        return Spans(
            found.number[chosen], found.start_ns[chosen], found.duration_ns[chosen], found.name[chosen]
        )

    def at(self, numbers: Ints) -> Spans:
        """Spans by their number in the lane; numbers ascending."""
        columns = [np.empty(len(numbers), np.int64) for _ in range(3)]
        for block, places, local in self._by_block(numbers):
            columns[0][places] = self._array(block, "start")[local]
            columns[0][places] += block["base"]
            columns[1][places] = self._array(block, "duration")[local]
            columns[2][places] = self._array(block, "name")[local]
        return Spans(numbers, *columns)

    def rows(self, numbers: Ints) -> Ints:
        """Rows of the table that spans are; numbers ascending."""
        rows = np.empty(len(numbers), np.int64)
        for block, places, local in self._by_block(numbers):
            runs = self._array(block, "run")
            run = np.searchsorted(runs, local.astype(runs.dtype), side="right") - 1
            rows[places] = self._array(block, "row")[run].astype(np.int64) + (
                local - runs[run].astype(np.int64)
            )
        return rows

    def rows_of(self, numbers: Ints) -> Ints:
        """The same for numbers in any order, with repeats."""
        if np.all(numbers[1:] >= numbers[:-1]):
            return self.rows(numbers)
        unique, which = np.unique(numbers, return_inverse=True)
        return self.rows(unique)[which]

    def _by_block(self, numbers: Ints) -> list[tuple[dict[str, Any], slice, Ints]]:
        edges = np.searchsorted(numbers, self._block_first)
        return [
            (block, slice(low, high), numbers[low:high] - first)
            for block, low, high, first in zip(
                self._blocks, edges[:-1].tolist(), edges[1:].tolist(), self._block_first.tolist()
            )
            if high > low
        ]

    def _level(self, pixel_ns: float) -> dict[str, Any] | None:
        """The coarsest level with two windows a pixel; the finest will do with one."""
        if not self._levels or 1 << self._levels[0]["shift"] > pixel_ns:
            return None
        fitting = [level for level in self._levels if 2 << level["shift"] <= pixel_ns]
        return fitting[-1] if fitting else self._levels[0]

    def _windows(self, level: Mapping[str, Any], start_ns: int, end_ns: int) -> LaneView | None:
        shift, base = level["shift"], level["base"]
        window = self._array(level, "window")
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
        first = self._with_next(level, "first", low, high, self.spans)
        return LaneView(
            begin,
            1 << shift,
            first,
            self._with_next(level, "busy_ns", low, high, self._busy_ns),
            self._array(level, "until_ns")[chosen] + aligned,
            self._array(level, "longest")[chosen] + first[:-1],
            self._array(level, "longest_start_ns")[chosen] + aligned,
            self._array(level, "longest_duration_ns")[chosen].astype(np.int64),
            self._array(level, "longest_name")[chosen].astype(np.int64),
        )

    def _with_next(self, level: Mapping[str, Any], name: str, low: int, high: int, total: int) -> Ints:
        values = self._array(level, name)
        chosen = values[low : high + 1].astype(np.int64)
        return np.append(chosen, total) if high == len(values) else chosen

    def _spans_view(self, start_ns: int, end_ns: int) -> LaneView | None:
        low, high = self._number_before(start_ns), self._number_at(end_ns)
        if high <= low:
            return None
        found = self._range(low, high)
        return LaneView(
            found.start_ns,
            0,
            np.arange(low, high + 1, dtype=np.int64),
            np.concatenate([[0], np.cumsum(found.duration_ns)]),
            np.maximum.accumulate(found.start_ns + found.duration_ns),
            found.number,
            found.start_ns,
            found.duration_ns,
            found.name,
        )

    def _number_before(self, time_ns: int) -> int:
        """Number of the last span that starts at or before a time; 0 if none does."""
        return max(self._number_at(time_ns + 1) - 1, 0)

    def _number_at(self, time_ns: int) -> int:
        """Number of the first span that starts at or after a time."""
        place = int(np.searchsorted(self._block_start, time_ns)) - 1
        if place < 0:
            return 0
        block = self._blocks[place]
        within = _search(self._array(block, "start"), time_ns - block["base"])
        return int(self._block_first[place]) + within

    def _range(self, low: int, high: int) -> Spans:
        return self.at(np.arange(low, min(high, self.spans), dtype=np.int64))

    def _array(self, stored: Mapping[str, Any], name: str) -> npt.NDArray[Any]:
        return self._blob.array(stored[name])


def _search(values: npt.NDArray[Any], needle: int) -> int:
    """`searchsorted` of one number, without converting the array to the number's type."""
    limits = np.iinfo(values.dtype)
    if needle <= limits.min:
        return 0
    if needle > limits.max:
        return len(values)
    return int(np.searchsorted(values, values.dtype.type(needle)))
