"""A kernel whose tiles share one buffer, so that each load waits for the work on the tile before."""

# rule: dma_not_overlapped
# case: TILES=32, COLUMNS=2048
# case: TILES=16, COLUMNS=4096
# case: TILES=48, COLUMNS=1024
# case: TILES=24, COLUMNS=3072
# case: TILES=64, COLUMNS=512
import nki
import nki.isa as nisa
import nki.language as nl
import torch

TILES = 32
COLUMNS = 2048


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


activate(torch.ones((TILES * 128, COLUMNS), device="neuron"))
