"""Compiled search for transfers of tiles that are neighbours in HBM."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Int32s, Ints
from neuron_tools.compiled import compiled

_LOAD, _STORE = 1, 2


@compiled
def _extend(box: Ints, region: Int32s) -> bool:
    """Add to a box the region right of it or below it; whether it is that."""
    if box[1] == region[1] and box[2] == region[2] and box[4] == region[3]:
        box[4] = region[4]
        return True
    if box[3] == region[3] and box[4] == region[4] and box[2] == region[1]:
        box[2] = region[2]
        return True
    return False


@compiled
def group_transfers(
    rows: Int32s,
    regions: Int32s,
    direction: Ints,
    whole_tiles: npt.NDArray[np.bool_],
    lines: Ints,
    pitch: Ints,
    most_bytes: int,
) -> Ints:
    """Group of each call, -1: none. Groups of one are possible.

    A group comes from one line of the kernel, and nobody else touches what its stores write, nor writes what
    its loads read, from its first to its last call.

    Args:
        rows: (calls, COLUMNS).
        regions: (regions, 5).
        direction: (calls,) 1 for loads and 2 for stores that may be joined, 0 for other calls.
        whole_tiles: (buffers,) whether each is a tile that may become part of a larger one.
        lines, pitch: (buffers,) partitions, and bytes of each.
        most_bytes: Bytes of a partition of one group.
    """
    count, buffers = rows.shape[0], lines.shape[0]
    group = np.full(count, -1, np.int64)
    first_use = np.full(buffers, count, np.int64)
    last_write = np.full(buffers, -1, np.int64)
    sites = 0
    for row in range(count):
        sites = max(sites, rows[row, 1] + 1)
        for slot in range(3, 9):
            region = rows[row, slot]
            if region >= 0:
                buffer = regions[region, 0]
                first_use[buffer] = min(first_use[buffer], row)
                if slot < 5:
                    last_write[buffer] = row
    taken = np.zeros(buffers, np.bool_)
    touched = np.full((buffers, 3), -1, np.int64)  # last row that read, wrote; site of the last to touch it
    of_site = np.full(sites, -1, np.int64)
    box = np.zeros((count, 5), np.int64)
    begin, last, total = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    groups = 0
    for row in range(count):
        way = direction[row]
        if way in (_LOAD, _STORE):
            here = rows[row, 3] if way == _LOAD else rows[row, 5]
            there = rows[row, 5] if way == _LOAD else rows[row, 3]
            tile, tensor = regions[here, 0], regions[there, 0]
            whole = regions[here, 1] == 0 and regions[here, 2] == lines[tile]
            whole = whole and regions[here, 3] == 0 and regions[here, 4] == pitch[tile]
            free = whole_tiles[tile] and whole and not taken[tile] and rows[row, 4] < 0
            free = free and rows[row, 6] < 0
            free = free and (first_use[tile] == row if way == _LOAD else last_write[tile] < row)
            if free:
                site = rows[row, 1]
                other = of_site[site]
                fits = other >= 0 and rows[last[other], 0] == rows[row, 0] and box[other, 0] == tensor
                if fits:
                    other_tile = regions[rows[last[other], 3] if way == _LOAD else rows[last[other], 5], 0]
                    fits = lines[other_tile] == lines[tile] and total[other] + pitch[tile] <= most_bytes
                if fits and way == _LOAD:
                    fits = touched[tensor, 1] < begin[other]
                if fits and way == _STORE:
                    fits = touched[tensor, 0] < begin[other] and touched[tensor, 2] == site
                fits = fits and _extend(box[other], regions[there])
                if not fits:
                    other = groups
                    groups += 1
                    of_site[site] = other
                    begin[other], total[other] = row, 0
                    for column in range(5):
                        box[other, column] = regions[there, column]
                group[row] = other
                last[other] = row
                total[other] += pitch[tile]
                taken[tile] = True
        for slot in range(3, 9):
            region = rows[row, slot]
            if region >= 0:
                buffer = regions[region, 0]
                touched[buffer, 0 if slot >= 5 else 1] = row
                touched[buffer, 2] = rows[row, 1]
    return group
