"""A kernel that loads the same row of factors again for every tile."""

# rule: repeated_loads
# case: TILES=16, COLUMNS=1024
# case: TILES=16, COLUMNS=2048
# case: TILES=32, COLUMNS=512
# case: TILES=8, COLUMNS=4096
# case: TILES=24, COLUMNS=1024
import nki
import nki.isa as nisa
import nki.language as nl
import torch

TILES = 16
COLUMNS = 1024


@nki.jit
def scale(data, factors):
    result = nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.shared_hbm)
    # added: factor = nl.ndarray((128, COLUMNS), dtype=data.dtype, buffer=nl.sbuf)
    # added: nisa.dma_copy(dst=factor, src=factors)
    for number in range(TILES):
        tile = nl.ndarray((128, COLUMNS), dtype=data.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=data[number * 128 : (number + 1) * 128])
        factor = nl.ndarray((128, COLUMNS), dtype=data.dtype, buffer=nl.sbuf)
        # mended:
        nisa.dma_copy(dst=factor, src=factors)  # fault
        # mended:
        nisa.tensor_tensor(dst=tile, data1=tile, data2=factor, op=nl.multiply)
        nisa.dma_copy(dst=result[number * 128 : (number + 1) * 128], src=tile)
    return result


scale(torch.ones((TILES * 128, COLUMNS), device="neuron"), torch.ones((128, COLUMNS), device="neuron"))
