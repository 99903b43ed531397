"""Where the lanes of an index stand in its file: tables of numbers, a row for each lane, block and level.

Plain tables, so that a profile with many lanes opens without building an object for each of their parts, and
so that compiled code finds its way through them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.timeline.blob import Blob, BlobWriter, Reference

ABSENT = -1
MOST_SHIFT = 62
TRACK, DEPTH, SPANS, START_NS, END_NS, BUSY_NS, FIRST_BLOCK, LAST_BLOCK, FIRST_LEVEL, LAST_LEVEL = range(10)
"""Columns of a lane. Its blocks and levels are those from the first to before the last."""

FIRST, COUNT, BASE, FIRST_ROW = range(4)
"""Columns of a block: number of its first span in the lane, its spans, its earliest start, its lowest row."""
BLOCK_START, BLOCK_DURATION, BLOCK_NAME, BLOCK_ROW, BLOCK_RUN = range(4, 19, 3)
"""Columns that say where a block's arrays stand: byte offset, bytes of a number, length (see `Lane`)."""
BLOCK_ARRAYS = {
    "start": BLOCK_START,
    "duration": BLOCK_DURATION,
    "name": BLOCK_NAME,
    "row": BLOCK_ROW,
    "run": BLOCK_RUN,
}

SHIFT, BASE_WINDOW, ENTRIES = range(3)
"""Columns of a level: windows are 2**shift ns long; number of the first; how many there are."""
WINDOW, FIRST_SPAN, BUSY_BEFORE, UNTIL, LONGEST_START, LONGEST_DURATION, LONGEST_NAME, LONGEST_ROW = range(
    3, 27, 3
)
"""Columns that say where a level's arrays stand, as those of a block do (see `levels.Entries`)."""
LEVEL_ARRAYS = {
    "window": WINDOW,
    "first": FIRST_SPAN,
    "busy_ns": BUSY_BEFORE,
    "until_ns": UNTIL,
    "longest_start_ns": LONGEST_START,
    "longest_duration_ns": LONGEST_DURATION,
    "longest_name": LONGEST_NAME,
    "longest_row": LONGEST_ROW,
}
_LANE_WIDTH, _BLOCK_WIDTH, _LEVEL_WIDTH = LAST_LEVEL + 1, BLOCK_RUN + 3, LONGEST_ROW + 3


@frozen
class LaneTable:
    """All lanes of an index: by track, then depth.

    Attributes:
        lanes, blocks, levels: int64, one row each, with the columns named above.
    """

    lanes: Ints
    blocks: Ints
    levels: Ints

    @classmethod
    def of(cls, tracks: Sequence[Sequence[Mapping[str, Any]]]) -> LaneTable:
        """The table of what `LaneWriter.finish` said of each track's lanes, by depth."""
        lanes: list[list[int]] = []
        blocks: list[list[int]] = []
        levels: list[list[int]] = []
        for track, stored_lanes in enumerate(tracks):
            for depth, lane in enumerate(stored_lanes):
                parts = len(blocks), len(levels)
                blocks += _block_rows(lane["blocks"])
                levels += [_level_row(level) for level in lane["levels"]]
                covered = (lane["start_ns"], lane["end_ns"], lane["busy_ns"])
                places = (parts[0], len(blocks), parts[1], len(levels))
                lanes.append([track, depth, lane["spans"], *covered, *places])
        return cls(_matrix(lanes, _LANE_WIDTH), _matrix(blocks, _BLOCK_WIDTH), _matrix(levels, _LEVEL_WIDTH))

    def store(self, blob: BlobWriter) -> list[Reference]:
        """Append the tables; where they stand."""
        return [blob.append(table.reshape(-1)) for table in (self.lanes, self.blocks, self.levels)]

    @classmethod
    def load(cls, blob: Blob, stored: Sequence[Reference]) -> LaneTable:
        """The tables of a stored index.

        Raises:
            ValueError: They, or what they tell of, reach beyond the file or do not fit together: compiled
                code reads where they say.
        """
        widths = (_LANE_WIDTH, _BLOCK_WIDTH, _LEVEL_WIDTH)
        arrays = [blob.array(reference) for reference in stored]
        _hold([array.dtype == np.int64 for array in arrays])
        table = cls(*(array.reshape(-1, width) for array, width in zip(arrays, widths, strict=True)))
        table._check(len(blob))
        return table

    def check_tracks(self, count: int) -> None:
        """Check that lanes belong to the first so many tracks.

        Raises:
            ValueError: They do not.
        """
        _hold(self.lanes[:, TRACK] < count)

    def _check(self, length: int) -> None:
        self._check_lanes()
        self._check_blocks(length)
        _hold(self.levels[:, ENTRIES] > 0, self.levels[:, SHIFT] >= 0, self.levels[:, SHIFT] < MOST_SHIFT)
        for place in LEVEL_ARRAYS.values():
            _hold_array(self.levels, place, self.levels[:, ENTRIES], length)

    def _check_lanes(self) -> None:
        """Whether each lane's blocks and levels follow those of the one before it."""
        shares = ((FIRST_BLOCK, LAST_BLOCK, len(self.blocks)), (FIRST_LEVEL, LAST_LEVEL, len(self.levels)))
        for first, last, total in shares:
            edges = np.append(0, self.lanes[:, last])
            _hold(self.lanes[:, first] == edges[:-1], np.diff(edges) >= 0, edges[-1] == total)
        track = self.lanes[:, TRACK]
        _hold(self.lanes[:, FIRST_BLOCK] < self.lanes[:, LAST_BLOCK], track >= 0, np.diff(track) >= 0)

    def _check_blocks(self, length: int) -> None:
        """Whether spans are counted through in each lane, and each block has as many as it says."""
        blocks, count = self.blocks, self.blocks[:, COUNT]
        first, last = self.lanes[:, FIRST_BLOCK], self.lanes[:, LAST_BLOCK]
        _hold(count > 0, count <= length)
        spans = np.append(0, np.cumsum(count))
        _hold(blocks[:, FIRST] == spans[:-1] - np.repeat(spans[first], last - first))
        _hold(self.lanes[:, SPANS] == spans[last] - spans[first])
        in_runs = blocks[:, BLOCK_RUN] != ABSENT
        rows = np.where(in_runs, blocks[:, BLOCK_RUN + 2], count)
        for place in (BLOCK_START, BLOCK_DURATION, BLOCK_NAME):
            _hold_array(blocks, place, count, length)
        _hold_array(blocks, BLOCK_ROW, rows, length)
        _hold_array(blocks[in_runs], BLOCK_RUN, np.maximum(rows[in_runs], 1), length)

    def level_stretches(self) -> list[tuple[int, int]]:
        """Where each level stands, first byte and that behind the last one; the coarsest levels first."""
        offset = self.levels[:, [*LEVEL_ARRAYS.values()]]
        size, count = (self.levels[:, [place + more for place in LEVEL_ARRAYS.values()]] for more in (1, 2))
        begin, end = offset.min(axis=1, initial=np.iinfo(np.int64).max), (offset + size * count).max(axis=1)
        order = np.argsort(-self.levels[:, SHIFT], kind="stable")
        return list(zip(begin[order].tolist(), end[order].tolist(), strict=True))


def _hold(*conditions: Any) -> None:
    if not all(np.all(condition) for condition in conditions):
        raise ValueError("its tables do not fit together")


def _hold_array(table: Ints, place: int, count: Ints, length: int) -> None:
    """Whether arrays have so many numbers, of a known size, and lie within a file of that length."""
    offset, size = table[:, place], table[:, place + 1]
    _hold(np.isin(size, (1, 2, 4, 8)), table[:, place + 2] == count, count <= length)
    _hold(offset >= 0, offset <= length)
    _hold(offset % size == 0, offset + size * count <= length)


def _block_rows(blocks: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    rows, first = [], 0
    for block in blocks:
        arrays = [number for name in BLOCK_ARRAYS for number in _place(block[name])]
        rows.append([first, block["spans"], block["base"], block["first_row"], *arrays])
        first += block["spans"]
    return rows


def _level_row(level: Mapping[str, Any]) -> list[int]:
    arrays = [number for name in LEVEL_ARRAYS for number in _place(level[name])]
    return [level["shift"], level["base"], level["entries"], *arrays]


def _place(reference: Reference | None) -> tuple[int, int, int]:
    if reference is None:
        return ABSENT, 1, 0
    offset, kind, count = reference
    return offset, np.dtype(kind).itemsize, count


def _matrix(rows: Sequence[Sequence[int]], width: int) -> Ints:
    return np.array(rows, np.int64).reshape(-1, width)
