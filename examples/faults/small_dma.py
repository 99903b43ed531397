"""A kernel that scales a table of 64-byte rows, loaded row by row.

Each partition takes every 128th row, so that each row is a piece of its own.
"""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

TILES, ROWS, COLUMNS = 16, 64, 16


@nki.jit
def scale(table):
    result = nl.ndarray((TILES * 128, ROWS * COLUMNS), dtype=table.dtype, buffer=nl.shared_hbm)
    for number in range(TILES):
        tile = nl.ndarray((128, ROWS * COLUMNS), dtype=table.dtype, buffer=nl.sbuf)
        rows = table.reshape((TILES, ROWS, 128, COLUMNS))[number].permute((1, 0, 2))
        # mended: rows = table.reshape((TILES, 128, ROWS, COLUMNS))[number]
        nisa.dma_copy(dst=tile.reshape((128, ROWS, COLUMNS)), src=rows)  # fault
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=result[number * 128 : (number + 1) * 128], src=tile)
    return result


scale(np.ones((TILES * ROWS * 128, COLUMNS), np.float32))
