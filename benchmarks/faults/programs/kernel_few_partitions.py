"""A kernel that works on few partitions at a time."""

# rule: underfilled_tiles
# case: PARTITIONS=32, COLUMNS=2048
# case: PARTITIONS=16, COLUMNS=2048
# case: PARTITIONS=32, COLUMNS=4096
# case: PARTITIONS=64, COLUMNS=2048
# case: PARTITIONS=32, COLUMNS=1024
import nki
import nki.isa as nisa
import nki.language as nl
import torch

PARTITIONS = 32
COLUMNS = 2048
FILLED = PARTITIONS
# mended: FILLED = 128


@nki.jit
def polish(data):
    result = nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.shared_hbm)
    for first in range(0, data.shape[0], FILLED):
        tile = nl.ndarray((FILLED, COLUMNS), dtype=data.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=data[first : first + FILLED])
        for _ in range(12):
            nisa.activation(dst=tile, op=nl.tanh, data=tile)  # fault
        nisa.dma_copy(dst=result[first : first + FILLED], src=tile)
    return result


polish(torch.ones((512, COLUMNS), device="neuron"))
