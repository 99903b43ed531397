"""A kernel that scales a table of 64-byte rows, loaded row by row.

Each partition takes every 128th row, so that each row is a piece of its own.
"""

# rule: small_dma
# case: TILES=8, ROWS=64, COLUMNS=16
# case: TILES=8, ROWS=64, COLUMNS=8
# case: TILES=8, ROWS=32, COLUMNS=32
# case: TILES=4, ROWS=128, COLUMNS=16
# case: TILES=12, ROWS=32, COLUMNS=16
import nki
import nki.isa as nisa
import nki.language as nl
import torch

TILES = 16
ROWS = 64
COLUMNS = 16


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


scale(torch.ones((TILES * ROWS * 128, COLUMNS), device="neuron"))
