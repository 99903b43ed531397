"""Levels of windows over a lane, written while its spans come, in memory that does not grow with the lane."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.timeline.blob import BlobWriter, LateArray, Region, type_up_to
from neuron_tools.profile.timeline.level_kernel import (
    FIELDS,
    NO_WINDOW,
    SHIFT_STEP,
    add_spans,
    close_all,
    count_changes,
)

FEWEST_WINDOWS = 1024
OVERVIEW_ENTRIES = 1 << 13  # levels of no more are drawn when all of a profile is: they stand side by side
SPANS_AT_ONCE = 1 << 14
LONGEST_SHIFT = 44  # a window of 4.9 hours


@frozen
class Bounds:
    """The greatest values that a lane's entries may have: they tell how wide a column must be."""

    spans: int
    busy_ns: int
    longest_ns: int
    name: int
    row: int


@frozen
class BlockSpans:
    """Spans of a lane, in order.

    Attributes:
        start_ns, duration_ns: int64, shape (spans,).
        name: int32, shape (spans,).
        runs, rows: int64: where runs of consecutive rows of the table begin, and the first row of each.
    """

    start_ns: Ints
    duration_ns: Ints
    name: npt.NDArray[np.int32]
    runs: Ints
    rows: Ints


class LevelsWriter:
    """Writes the windows of a lane: the finest level, and those above it, each of windows 4 times as long.

    An entry tells of a window in which a span begins: `window`, its number (start over size); `first`, the
    number of its first span in the lane; `busy_ns`, the duration of all spans before that one; `until_ns`,
    when the last span that begins in it, or before, ends; `longest_*`, of the longest span that begins in it.

    Args:
        windows: How many windows each level has, the finest first.
        first, last: When the lane's first and last span begin, in ns.
    """

    def __init__(
        self, blob: BlobWriter, shift: int, windows: list[int], first: int, last: int, bounds: Bounds
    ) -> None:
        self._shift, self._windows = shift, windows
        shifts = [shift + SHIFT_STEP * level for level in range(len(windows))]
        self._levels = [
            _Level(blob, shift, count, first >> shift, last >> shift, bounds)
            for shift, count in zip(shifts, windows, strict=True)
        ]
        self._before = np.zeros(2, np.int64)
        self._current = np.full((len(windows), FIELDS), NO_WINDOW)
        self._done = np.empty((len(windows), FIELDS, 2 * SPANS_AT_ONCE), np.int64)
        self._filled = np.zeros(len(windows), np.int64)

    def add(self, spans: BlockSpans) -> None:
        """Take the spans of a further block."""
        for begin in range(0, len(spans.start_ns), SPANS_AT_ONCE):
            end = min(begin + SPANS_AT_ONCE, len(spans.start_ns))
            low = int(np.searchsorted(spans.runs, begin, side="right")) - 1
            high = int(np.searchsorted(spans.runs, end))
            add_spans(
                spans.start_ns[begin:end], spans.duration_ns[begin:end], spans.name[begin:end],
                spans.runs[low:high] - begin, spans.rows[low:high], self._shift, self._before, self._current,
                self._done, self._filled,
            )  # fmt: skip
            self._write(SPANS_AT_ONCE)

    def finish(self) -> list[dict[str, Any]]:
        """What the index says of the levels."""
        close_all(self._current, self._done, self._filled)
        self._write(0)
        return [level.stored() for level in self._levels]

    def _write(self, most: int) -> None:
        """Write the windows of levels of which more than so many are done."""
        for place, level in enumerate(self._levels):
            count = int(self._filled[place])
            if count > most:
                level.write(self._done[place, :, :count])
                self._filled[place] = 0


class _Level:
    """Room for the windows of one level."""

    def __init__(
        self, blob: BlobWriter, shift: int, windows: int, first: int, last: int, bounds: Bounds
    ) -> None:
        self._shift, self._base, self._count = shift, first, windows
        widths = {
            "window": last - first,
            "first": bounds.spans,
            "busy_ns": bounds.busy_ns,
            "until_ns": (1 << shift) + bounds.longest_ns,
            "longest_start_ns": 1 << shift,
            "longest_duration_ns": bounds.longest_ns,
            "longest_name": bounds.name,
            "longest_row": bounds.row,
        }
        self._regions: dict[str, Region | LateArray] = {
            name: blob.reserve(type_up_to(greatest), windows, late=windows <= OVERVIEW_ENTRIES)
            for name, greatest in widths.items()
        }

    def write(self, entries: Ints) -> None:
        """Write further windows, int64, shape (FIELDS, windows)."""
        begin = entries[0] << self._shift
        for (name, region), values in zip(self._regions.items(), entries, strict=True):
            if name == "window":
                region.write(values - self._base)
            elif name in ("until_ns", "longest_start_ns"):
                region.write(values - begin)
            else:
                region.write(values)

    def stored(self) -> dict[str, Any]:
        """What the index says of the level."""
        places = {name: region.reference for name, region in self._regions.items()}
        return {"shift": self._shift, "base": self._base, "entries": self._count, **places}


class WindowCounter:
    """Counts the windows of each level of a lane, whose finest has windows of 2**shift ns."""

    def __init__(self, shift: int) -> None:
        self._shift, self._last = shift, int(NO_WINDOW)
        self._changes = np.zeros(1 + (LONGEST_SHIFT - min(shift, LONGEST_SHIFT)) // SHIFT_STEP, np.int64)

    def add(self, start_ns: Ints) -> None:
        """Take further starts, ascending."""
        self._last = count_changes(start_ns, self._shift, self._last, self._changes)

    def levels(self) -> list[int]:
        """Windows of each level, up to the first one with few."""
        counts: list[int] = np.cumsum(self._changes[::-1])[::-1].tolist()
        many = sum(count > FEWEST_WINDOWS for count in counts)
        return counts[: many + 1]


def windows_of(start_ns: Ints, shift: int) -> int:
    """In how many windows of 2**shift ns spans start."""
    return int(np.count_nonzero(np.diff(start_ns >> shift))) + 1
