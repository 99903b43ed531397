"""Compiled search for copies from PSUM that their readers can do without."""

from __future__ import annotations

import numpy as np

from neuron_tools.arrays import Bools, Int32s, Ints
from neuron_tools.compiled import compiled

_MOST_USES = 4096
"""Uses of a tensor beyond which its copies are left alone."""


@compiled
def _equal(one: Int32s, other: Int32s) -> bool:
    return bool((one[1:5] == other[1:5]).all())


@compiled
def _apart(one: Int32s, other: Int32s) -> bool:
    return bool(
        one[2] <= other[1] or other[2] <= one[1] or one[4] <= other[3] or other[4] <= one[3]
    )  # fmt: skip


@compiled
def find_reads(rows: Int32s, regions: Int32s, copies: Bools, reads: Bools, buffers: int, most: int) -> Ints:
    """The copy that each call can do without: (calls,), -1 none; a copy that falls away has its own number.

    Args:
        rows: (calls, COLUMNS).
        regions: (regions, 5).
        copies: (calls,) whether each copies all of a tile of PSUM.
        reads: (calls,) whether the first operand of each may lie in PSUM.
        buffers: How many.
        most: Tiles of PSUM that may wait at one time.
    """
    count = rows.shape[0]
    start = np.zeros(buffers + 1, np.int64)
    for turn in range(2):
        if turn == 1:
            for buffer in range(buffers):
                start[buffer + 1] += start[buffer]
            at = start[:-1].copy()
            uses = np.empty((start[-1], 2), np.int64)
        for row in range(count):
            for slot in range(3, rows.shape[1]):
                if rows[row, slot] >= 0:
                    buffer = regions[rows[row, slot], 0]
                    if turn == 0:
                        start[buffer + 1] += 1
                    else:
                        uses[at[buffer], 0], uses[at[buffer], 1] = row, slot
                        at[buffer] += 1
    copy_of = np.full(count, -1, np.int64)
    ends = np.full(most, -1, np.int64)
    for row in range(count):
        if not copies[row]:
            continue
        region = regions[rows[row, 3]]
        first, end = start[region[0]], start[region[0] + 1]
        if end - first > _MOST_USES:
            continue
        last, fits = np.int64(row), True
        for use in range(first, end):
            user, slot = uses[use, 0], uses[use, 1]
            other = regions[rows[user, slot]]
            if user == row or _apart(region, other):
                continue
            once = True
            for second in range(slot + 1, rows.shape[1]):
                once &= rows[user, second] < 0 or regions[rows[user, second], 0] != region[0]
            if user < row or slot != 5 or not reads[user] or not once or not _equal(region, other):
                fits = False
                break
            last = max(last, user)
        source = regions[rows[row, 5], 0]
        for use in range(start[source], start[source + 1]):
            if uses[use, 1] < 5 and uses[use, 0] > row:  # what was copied is written over
                fits = False
        place = 0
        while place < most and ends[place] >= row:
            place += 1
        if not fits or last == row or place == most:
            continue
        ends[place] = last
        copy_of[row] = row
        for use in range(first, end):
            user, slot = uses[use, 0], uses[use, 1]
            if user != row and not _apart(region, regions[rows[user, slot]]):
                copy_of[user] = row
    return copy_of
