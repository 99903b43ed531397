"""A softmax whose tile is larger than SBUF: exponentials go to HBM and are loaded back to be scaled."""

# rule: spill
# case: COLUMNS=1 << 17, PIECE=1 << 11
# case: COLUMNS=1 << 16, PIECE=1 << 11
# case: COLUMNS=1 << 17, PIECE=1 << 12
# case: COLUMNS=1 << 16, PIECE=1 << 12
import nki
import nki.isa as nisa
import nki.language as nl
import torch

COLUMNS = 1 << 17
PIECE = 1 << 11
TILE = 1 << 16
# mended: TILE = 1 << 14


def room_for_tile():
    """SBUF where the tile fits, else HBM."""
    return nl.sbuf if TILE <= 1 << 14 else nl.private_hbm


@nki.jit
def softmax(data):
    result = nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.shared_hbm)
    for first in range(0, COLUMNS, TILE):
        powers = nl.ndarray((128, TILE), dtype=data.dtype, buffer=room_for_tile())
        total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=total, value=0.0)
        for at in range(0, TILE, PIECE):
            piece = nl.ndarray((128, PIECE), dtype=data.dtype, buffer=nl.sbuf)
            part = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=piece, src=data[:, first + at : first + at + PIECE])
            kept = piece if powers.buffer is nl.private_hbm else powers[:, at : at + PIECE]
            nisa.activation(dst=kept, op=nl.exp, data=piece)
            nisa.tensor_reduce(dst=part, op=nl.add, data=kept, axis=1)
            nisa.tensor_tensor(dst=total, data1=total, data2=part, op=nl.add)
            if kept is piece:
                nisa.dma_copy(dst=powers[:, at : at + PIECE], src=piece)  # fault
        nisa.reciprocal(dst=total, data=total)
        for at in range(0, TILE, PIECE):
            piece = powers[:, at : at + PIECE]
            if powers.buffer is nl.private_hbm:
                piece = nl.ndarray((128, PIECE), dtype=data.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=piece, src=powers[:, at : at + PIECE])
            nisa.tensor_scalar(dst=piece, data=piece, op0=nl.multiply, operand0=total)
            nisa.dma_copy(dst=result[:, first + at : first + at + PIECE], src=piece)
    return result


softmax(torch.ones((128, COLUMNS), device="neuron"))
