"""A kernel multiplies matrices with both operands on chip and PSUM emptied by two engines."""

# case: ROWS=1024, DEPTH=1024, COLUMNS=1024
# case: ROWS=512, DEPTH=1024, COLUMNS=2048
# case: ROWS=1024, DEPTH=512, COLUMNS=2048
import nki
import nki.isa as nisa
import nki.language as nl
import torch

ROWS = 1024
DEPTH = 1024
COLUMNS = 1024


@nki.jit
def matmul(lhs_t, rhs):
    result = nl.ndarray((ROWS, COLUMNS), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    left, right = [], []
    for k in range(0, DEPTH, 128):
        left.append(nl.ndarray((128, ROWS), dtype=lhs_t.dtype, buffer=nl.sbuf))
        right.append(nl.ndarray((128, COLUMNS), dtype=rhs.dtype, buffer=nl.sbuf))
        nisa.dma_copy(dst=left[-1], src=lhs_t[k : k + 128])
        nisa.dma_copy(dst=right[-1], src=rhs[k : k + 128])
    for m in range(0, ROWS, 128):
        row = nl.ndarray((128, COLUMNS), dtype=lhs_t.dtype, buffer=nl.sbuf)
        for n in range(0, COLUMNS, 512):
            total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for one, other in zip(left, right, strict=True):
                nisa.nc_matmul(dst=total, stationary=one[:, m : m + 128], moving=other[:, n : n + 512])
            engine = nisa.scalar_engine if n % 1024 else nisa.vector_engine
            nisa.tensor_copy(dst=row[:, n : n + 512], src=total, engine=engine)
        nisa.dma_copy(dst=result[m : m + 128], src=row)
    return result


made = {"dtype": torch.bfloat16, "device": "neuron"}
lhs_t, rhs = torch.ones((DEPTH, ROWS), **made), torch.ones((DEPTH, COLUMNS), **made)
products = [matmul(lhs_t, rhs) for _ in range(2)]
