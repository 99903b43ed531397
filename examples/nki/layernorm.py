"""Layer normalisation of rows: sums by two reductions, or mean and variance from one pass of bn_stats.

neuron-profile capture -- python examples/nki/layernorm.py
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

EPSILON = 1e-5


def tile_of(width):
    """A tile of 128 rows in SBUF."""
    return nl.ndarray((128, width), dtype=nl.float32, buffer=nl.sbuf)


def finish(tile, mean, variance):
    """(tile - mean) / sqrt(variance + EPSILON), in place."""
    nisa.tensor_scalar(dst=variance, data=variance, op0=nl.add, operand0=EPSILON)
    nisa.activation(dst=variance, op=nl.rsqrt, data=variance)
    nisa.tensor_scalar(
        dst=tile, data=tile, op0=nl.subtract, operand0=mean, op1=nl.multiply, operand1=variance
    )


@nki.jit
def layernorm_sums(a):
    """Sum and sum of squares of each row: the tile is read three times."""
    rows, width = a.shape
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for row in range(0, rows, 128):
        tile, squares = tile_of(width), tile_of(width)
        mean, variance, square = tile_of(1), tile_of(1), tile_of(1)
        nisa.dma_copy(dst=tile, src=a[row : row + 128])
        nisa.tensor_reduce(dst=mean, op=nl.add, data=tile, axis=1)
        nisa.tensor_scalar(dst=mean, data=mean, op0=nl.multiply, operand0=1.0 / width)
        nisa.tensor_tensor(dst=squares, data1=tile, data2=tile, op=nl.multiply)
        nisa.tensor_reduce(dst=variance, op=nl.add, data=squares, axis=1)
        nisa.tensor_tensor(dst=square, data1=mean, data2=mean, op=nl.multiply)
        nisa.scalar_tensor_tensor(
            dst=variance,
            data=variance,
            op0=nl.multiply,
            operand0=1.0 / width,
            op1=nl.subtract,
            operand1=square,
        )
        finish(tile, mean, variance)
        nisa.dma_copy(dst=result[row : row + 128], src=tile)
    return result


@nki.jit
def layernorm_stats(a):
    """bn_stats reads each part of a row once; bn_aggr joins the parts."""
    rows, width = a.shape
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    step = nl.tile_size.bn_stats_fmax
    parts = width // step
    for row in range(0, rows, 128):
        tile, stats, moments = tile_of(width), tile_of(6 * parts), tile_of(2)
        nisa.dma_copy(dst=tile, src=a[row : row + 128])
        for part in range(parts):
            nisa.bn_stats(
                dst=stats[:, part * 6 : part * 6 + 6], data=tile[:, part * step : (part + 1) * step]
            )
        nisa.bn_aggr(dst=moments, data=stats)
        finish(tile, moments[:, 0:1], moments[:, 1:2])
        nisa.dma_copy(dst=result[row : row + 128], src=tile)
    return result


if __name__ == "__main__":
    data = np.random.default_rng(0).standard_normal((1024, 2048)).astype(np.float32)
    centred = data - data.mean(axis=1, keepdims=True)
    expected = centred / np.sqrt(data.var(axis=1, keepdims=True) + EPSILON)
    compare([layernorm_sums, layernorm_stats], (data,), expected, 1e-4)
    layernorm_stats(data)
