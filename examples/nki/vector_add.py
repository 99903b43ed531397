"""Adding two matrices in three stages: what a kernel gains from moving more bytes at a time.

neuron-profile capture -- python examples/nki/vector_add.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from neuron_tools import compat

compat.install()
sys.path.insert(0, str(Path(__file__).parent))

import nki
import nki.isa as nisa
import nki.language as nl
from report import compare


def add_tiles(a, b, width):
    """Load a tile of each operand, add, store; tiles are 128 rows of `width` elements."""
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for row in range(0, a.shape[0], 128):
        for column in range(0, a.shape[1], width):
            rows, columns = slice(row, row + 128), slice(column, column + width)
            left = nl.ndarray((128, width), dtype=a.dtype, buffer=nl.sbuf)
            right = nl.ndarray((128, width), dtype=b.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=left, src=a[rows, columns])
            nisa.dma_copy(dst=right, src=b[rows, columns])
            nisa.tensor_tensor(dst=left, data1=left, data2=right, op=nl.add)
            nisa.dma_copy(dst=result[rows, columns], src=left)
    return result


@nki.jit
def add_narrow(a, b):
    """Stage 1: 128 elements of a row at a time: 512-byte descriptors, and a transfer for every 64 KiB."""
    return add_tiles(a, b, 128)


@nki.jit
def add_wide(a, b):
    """Stage 2: 1024 elements at a time: full packets, an eighth of the transfers."""
    return add_tiles(a, b, 1024)


@nki.jit
def add_rows(a, b):
    """Stage 3: whole rows at a time: the time is that of the bytes."""
    return add_tiles(a, b, a.shape[1])


if __name__ == "__main__":
    random = np.random.default_rng(0)
    first, second = (random.standard_normal((512, 4096)).astype(np.float32) for _ in range(2))
    compare([add_narrow, add_wide, add_rows], (first, second), first + second, 1e-6)
    add_rows(first, second)
