"""Compiled search for what happens to a filled tile next."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Int32s, Ints
from neuron_tools.compiled import compiled, compiled_part

DROPPED, SUNK = 0, 1


@compiled_part
def _area(region: Int32s) -> int:
    return int(region[2] - region[1]) * int(region[4] - region[3])


@compiled
def follow_fills(
    rows: Int32s,
    regions: Int32s,
    fills: npt.NDArray[np.bool_],
    adds: npt.NDArray[np.bool_],
    area: Ints,
    start: Ints,
    uses: Ints,
) -> tuple[npt.NDArray[np.int8], Ints, npt.NDArray[np.bool_]]:
    """Which fills fall away, where the others move, and which accumulations write instead.

    Args:
        rows: (calls, COLUMNS).
        regions: (regions, 5).
        fills: (calls,) whether each fills a tile with 0 or another number.
        adds: (calls,) whether each is a matmul that adds to what is there, after a fill with 0.
        area: (buffers,) bytes of each, over all lines.
        start, uses: Rows that touch each buffer.

    Returns:
        (what (calls,): DROPPED, SUNK or -1; before which row a sunk fill stands; whether an addition writes).
    """
    count = rows.shape[0]
    what = np.full(count, -1, np.int8)
    target = np.full(count, -1, np.int64)
    writes = np.zeros(count, np.bool_)
    for buffer in range(start.shape[0] - 1):
        first, end = start[buffer], start[buffer + 1]
        if end - first < 2 or not fills[uses[first]]:
            continue
        fill = uses[first]
        region = rows[fill, 3]
        if regions[region, 0] != buffer or _area(regions[region]) != area[buffer]:
            continue
        what[fill], target[fill] = SUNK, uses[first + 1]
        covered = np.int64(0)
        at = first + 1
        while at < end and covered < area[buffer]:
            row = uses[at]
            written = rows[row, 3]
            if not adds[row] or written < 0 or regions[written, 0] != buffer:
                break
            fresh = True
            for before in range(first + 1, at):
                other = rows[uses[before], 3]
                if other == written:
                    fresh = False
                elif (
                    regions[other, 1] < regions[written, 2] and regions[written, 1] < regions[other, 2]
                    and regions[other, 3] < regions[written, 4] and regions[written, 3] < regions[other, 4]
                ):  # fmt: skip
                    covered = -1
                    break
            if covered < 0:
                break
            if fresh:
                covered += _area(regions[written])
            at += 1
        if covered < area[buffer]:
            continue
        what[fill] = DROPPED
        for place in range(first + 1, at):
            fresh = True
            for before in range(first + 1, place):
                if rows[uses[before], 3] == rows[uses[place], 3]:
                    fresh = False
            writes[uses[place]] = fresh
    return what, target, writes
