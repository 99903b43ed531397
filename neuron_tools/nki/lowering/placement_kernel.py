"""Compiled walk through the calls: who wrote each place on chip last, when a tile there is read."""

from __future__ import annotations

import numpy as np

from neuron_tools.arrays import Int32s, Ints
from neuron_tools.compiled import compiled

_FIRST_WRITE, _FIRST_READ = 3, 5
"""Columns of a row from which on its regions are written and read."""


@compiled
def first_lost(rows: Int32s, tiles: Ints, cells: Ints, width: int, height: int) -> tuple[int, int, int]:
    """The first read of a tile after another one at its place was written.

    Args:
        rows: (calls, 9) with the regions that each writes and reads.
        tiles: (regions, 2) first and last tile of each region, the end exclusive; empty for others.
        cells: (tiles, 4) the rectangle of cells of each tile: first and last column and row, ends exclusive.
        width, height: Cells in all.

    Returns:
        (call, tile that is read, tile that was written there since); -1 where nothing is lost.
    """
    owner = np.full((height, width), -1, np.int64)
    written = np.zeros(cells.shape[0], np.bool_)
    for row in range(rows.shape[0]):
        for slot in range(_FIRST_READ, rows.shape[1]):
            region = rows[row, slot]
            if region < 0:
                continue
            for tile in range(tiles[region, 0], tiles[region, 1]):
                if not written[tile]:
                    continue
                for y in range(cells[tile, 2], cells[tile, 3]):
                    for x in range(cells[tile, 0], cells[tile, 1]):
                        if owner[y, x] != tile:
                            return row, tile, owner[y, x]
        for slot in range(_FIRST_WRITE, _FIRST_READ):
            region = rows[row, slot]
            if region < 0:
                continue
            for tile in range(tiles[region, 0], tiles[region, 1]):
                written[tile] = True
                for y in range(cells[tile, 2], cells[tile, 3]):
                    for x in range(cells[tile, 0], cells[tile, 1]):
                        owner[y, x] = tile
    return -1, -1, -1
