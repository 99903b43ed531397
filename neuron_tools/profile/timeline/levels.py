"""Levels of windows over a lane, written while entries come, in memory that does not grow with the lane."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from neuron_tools.profile.timeline.blob import BlobWriter, LateArray, Region, type_up_to
from neuron_tools.profile.timeline.scan import Ints

SHIFT_STEP = 2
FEWEST_WINDOWS = 1024
OVERVIEW_ENTRIES = 1 << 13  # levels of no more are drawn when all of a profile is: they stand side by side
HELD_ENTRIES = 1 << 13
LONGEST_SHIFT = 44  # a window of 4.9 hours


@dataclass(frozen=True, slots=True)
class Entries:
    """Windows of one level, in order; every column int64, shape (windows,).

    Attributes:
        window: Number of the window: its start over its size.
        first: First span that starts in it, counted in the lane.
        busy_ns: Duration of all spans before that one.
        until_ns: When the last span that starts in it, or before, ends.
        longest_start_ns, longest_duration_ns, longest_name, longest_row: Of the longest span that starts
            in it; its row counts in the table.
    """

    window: Ints
    first: Ints
    busy_ns: Ints
    until_ns: Ints
    longest_start_ns: Ints
    longest_duration_ns: Ints
    longest_name: Ints
    longest_row: Ints

    def __len__(self) -> int:
        return len(self.window)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The greatest values that a lane's entries may have: they tell how wide a column must be."""

    spans: int
    busy_ns: int
    longest_ns: int
    name: int
    row: int


class LevelWriter:
    """Writes the entries of one level and, from them, those of the coarser ones above it.

    Args:
        windows: How many windows this level and each above it have.
        base: Number of the level's first window.
    """

    def __init__(
        self, blob: BlobWriter, shift: int, windows: list[int], base: int, last: int, bounds: Bounds
    ) -> None:
        self._shift, self._base, self._count = shift, base, windows[0]
        self._held: list[Entries] = []
        widths = {
            "window": last - base,
            "first": bounds.spans,
            "busy_ns": bounds.busy_ns,
            "until_ns": (1 << shift) + bounds.longest_ns,
            "longest_start_ns": 1 << shift,
            "longest_duration_ns": bounds.longest_ns,
            "longest_name": bounds.name,
            "longest_row": bounds.row,
        }
        is_overview = windows[0] <= OVERVIEW_ENTRIES
        self._regions: dict[str, Region | LateArray] = {
            name: blob.reserve(type_up_to(greatest), windows[0], late=is_overview)
            for name, greatest in widths.items()
        }
        self._coarser: LevelWriter | None = None
        if len(windows) > 1:
            above = (shift + SHIFT_STEP, windows[1:], base >> SHIFT_STEP, last >> SHIFT_STEP)
            self._coarser = LevelWriter(blob, *above, bounds)

    def add(self, entries: Entries) -> None:
        """Take further entries; the first may belong to the last one's window."""
        self._held.append(entries)
        if sum(map(len, self._held)) >= HELD_ENTRIES:
            self._write_held()

    def finish(self) -> list[dict[str, Any]]:
        """What the index says of this level and those above it."""
        if self._held:
            self._write_held()
            self._write(self._held[0])
        stored = {name: region.reference for name, region in self._regions.items()}
        own = {"shift": self._shift, "base": self._base, "entries": self._count, **stored}
        return [own, *(self._coarser.finish() if self._coarser else [])]

    def _write_held(self) -> None:
        """Write all but the last window, to which more may belong."""
        entries = merged(_all_of(self._held))
        self._held = [_part(entries, slice(-1, None))]
        self._write(_part(entries, slice(0, -1)))

    def _write(self, entries: Entries) -> None:
        begin = entries.window << self._shift
        for name, region in self._regions.items():
            values = getattr(entries, name)
            if name == "window":
                values = values - self._base
            elif name in ("until_ns", "longest_start_ns"):
                values = values - begin
            region.write(values)
        if self._coarser is not None and len(entries):
            self._coarser.add(_moved(entries))


class WindowCounter:
    """Counts the windows of each level of a lane, whose finest has windows of 2**shift ns."""

    def __init__(self, shift: int) -> None:
        self._shift = shift
        self._counts = [0] * (1 + (LONGEST_SHIFT - min(shift, LONGEST_SHIFT)) // SHIFT_STEP)
        self._last: list[int | None] = [None] * len(self._counts)

    def add(self, start_ns: Ints) -> None:
        """Take further starts, ascending."""
        window = start_ns >> self._shift
        for level, last in enumerate(self._last):
            window = window[np.flatnonzero(np.diff(window, prepend=window[0] - 1))]
            self._counts[level] += len(window) - (last == int(window[0]))
            self._last[level] = int(window[-1])
            window = window >> SHIFT_STEP

    def levels(self) -> list[int]:
        """Windows of each level, up to the first one with few."""
        many = sum(count > FEWEST_WINDOWS for count in self._counts)
        return self._counts[: many + 1]


def windows_of(start_ns: Ints, shift: int) -> int:
    """In how many windows of 2**shift ns spans start."""
    return int(np.count_nonzero(np.diff(start_ns >> shift))) + 1


def longest_of(duration: Ints, opening: Ints) -> Ints:
    """Place of the longest span of each window; windows begin at `opening`."""
    bits = max(len(duration) - 1, 1).bit_length()
    place = np.arange(len(duration), dtype=np.int64)
    key = (np.minimum(duration, (1 << 62 - bits) - 1) << bits) | place
    longest: Ints = np.maximum.reduceat(key, opening) & ((1 << bits) - 1)
    return longest


def merged(entries: Entries) -> Entries:
    """One entry of each run of entries whose window numbers are equal."""
    window = entries.window
    opening = np.flatnonzero(np.diff(window, prepend=window[0] - 1))
    closing = np.append(opening[1:], len(window)) - 1
    longest = longest_of(entries.longest_duration_ns, opening)
    return Entries(
        window[opening],
        entries.first[opening],
        entries.busy_ns[opening],
        entries.until_ns[closing],
        entries.longest_start_ns[longest],
        entries.longest_duration_ns[longest],
        entries.longest_name[longest],
        entries.longest_row[longest],
    )


def _moved(entries: Entries) -> Entries:
    """The same with windows 2**SHIFT_STEP times as long, not yet merged."""
    columns = [getattr(entries, field.name) for field in fields(Entries)]
    return Entries(columns[0] >> SHIFT_STEP, *columns[1:])


def _part(entries: Entries, chosen: slice) -> Entries:
    return Entries(*(getattr(entries, field.name)[chosen] for field in fields(Entries)))


def _all_of(parts: list[Entries]) -> Entries:
    columns = [np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Entries)]
    return Entries(*columns)
