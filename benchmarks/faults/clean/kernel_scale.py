"""A kernel streams wide tiles, the factors loaded once, both elementwise engines at work."""

# case: TILES=16, COLUMNS=2048
# case: TILES=32, COLUMNS=2048
# case: TILES=16, COLUMNS=4096
import nki
import nki.isa as nisa
import nki.language as nl
import torch

TILES = 16
COLUMNS = 2048


@nki.jit
def scale(data, factors):
    result = nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.shared_hbm)
    factor = nl.ndarray((128, COLUMNS), dtype=data.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=factor, src=factors)
    for number in range(TILES):
        rows = slice(number * 128, (number + 1) * 128)
        tile = nl.ndarray((128, COLUMNS), dtype=data.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=data[rows])
        nisa.tensor_tensor(dst=tile, data1=tile, data2=factor, op=nl.multiply)
        nisa.activation(dst=tile, op=nl.tanh, data=tile)
        nisa.dma_copy(dst=result[rows], src=tile)
    return result


data = torch.ones((TILES * 128, COLUMNS), dtype=torch.bfloat16, device="neuron")
factors = torch.ones((128, COLUMNS), dtype=torch.bfloat16, device="neuron")
for _ in range(4):
    data = scale(data, factors)
