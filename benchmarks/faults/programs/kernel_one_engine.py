"""A kernel whose elementwise work all runs on the Vector engine."""

# rule: engine_imbalance
# case: TILES=16, COLUMNS=1024
# case: TILES=16, COLUMNS=2048
# case: TILES=32, COLUMNS=1024
# case: TILES=12, COLUMNS=2048
import nki
import nki.isa as nisa
import nki.language as nl
import torch

TILES = 16
COLUMNS = 1024


@nki.jit
def square(data):
    result = nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.shared_hbm)
    for number in range(TILES):
        tile = nl.ndarray((128, COLUMNS), dtype=data.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=data[number * 128 : (number + 1) * 128])
        engine = nisa.vector_engine
        # mended: engine = nisa.scalar_engine if number % 8 in (1, 4, 6) else nisa.vector_engine
        for _ in range(16):
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=0.5, engine=engine)  # fault
        nisa.dma_copy(dst=result[number * 128 : (number + 1) * 128], src=tile)
    return result


square(torch.ones((TILES * 128, COLUMNS), device="neuron"))
