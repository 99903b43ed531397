"""A softmax kernel that passes twice over each tile, which stays in SBUF."""

# case: TILES=16, COLUMNS=2048
# case: TILES=16, COLUMNS=4096
# case: TILES=32, COLUMNS=2048
import nki
import nki.isa as nisa
import nki.language as nl
import torch

TILES = 16
COLUMNS = 2048


@nki.jit
def softmax(data):
    result = nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.shared_hbm)
    for number in range(TILES):
        rows = slice(number * 128, (number + 1) * 128)
        tile = nl.ndarray((128, COLUMNS), dtype=data.dtype, buffer=nl.sbuf)
        top, total = (nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf) for _ in range(2))
        nisa.dma_copy(dst=tile, src=data[rows])
        nisa.tensor_reduce(dst=top, op=nl.maximum, data=tile, axis=1, negate=True)
        nisa.activation(dst=tile, op=nl.exp, data=tile, bias=top, reduce_op=nl.add, reduce_res=total)
        nisa.reciprocal(dst=total, data=total)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=total)
        nisa.dma_copy(dst=result[rows], src=tile)
    return result


data = torch.ones((TILES * 128, COLUMNS), dtype=torch.bfloat16, device="neuron")
for _ in range(4):
    data = softmax(data)
