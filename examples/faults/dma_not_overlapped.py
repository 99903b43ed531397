"""A kernel whose tiles share one buffer, so that each load waits for the work on the tile before."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

TILES, COLUMNS = 32, 2048


@nki.jit
def activate(data):
    result = nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.shared_hbm)
    shared = nl.ndarray((128, COLUMNS), dtype=data.dtype, buffer=nl.sbuf)
    for number in range(TILES):
        tile = shared
        # mended: tile = nl.ndarray((128, COLUMNS), dtype=data.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=data[number * 128 : (number + 1) * 128])  # fault
        nisa.activation(dst=tile, op=nl.exp, data=tile)
        nisa.dma_copy(dst=result[number * 128 : (number + 1) * 128], src=tile)
    return result


activate(np.ones((TILES * 128, COLUMNS), np.float32))
