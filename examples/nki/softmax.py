"""Softmax over rows, twice: one instruction for each step, and with steps that share an instruction.

neuron-profile capture -- python examples/nki/softmax.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import numpy as np

from neuron_tools import compat

compat.install()
sys.path.insert(0, str(Path(__file__).parent))

import nki
import nki.isa as nisa
import nki.language as nl
from report import compare


def column():
    """A tile with one fp32 number per partition."""
    return nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)


@nki.jit
def softmax_steps(a):
    """Maximum, subtraction, exponential, sum, division: five passes over each tile on two engines."""
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for row in range(0, a.shape[0], 128):
        tile = nl.ndarray((128, a.shape[1]), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=a[row : row + 128])
        top, total = column(), column()
        nisa.tensor_reduce(dst=top, op=nl.maximum, data=tile, axis=1)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.subtract, operand0=top)
        nisa.activation(dst=tile, op=nl.exp, data=tile)
        nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=1)
        nisa.reciprocal(dst=total, data=total)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=total)
        nisa.dma_copy(dst=result[row : row + 128], src=tile)
    return result


@nki.jit
def softmax_fused(a):
    """The Scalar engine subtracts, exponentiates and sums in one instruction."""
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for row in range(0, a.shape[0], 128):
        tile = nl.ndarray((128, a.shape[1]), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=a[row : row + 128])
        top, total = column(), column()
        nisa.tensor_reduce(dst=top, op=nl.maximum, data=tile, axis=1, negate=True)
        nisa.activation(
            dst=tile, op=nl.exp, data=tile, bias=top,
            reduce_op=nl.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )  # fmt: skip
        nisa.reciprocal(dst=total, data=total)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=total)
        nisa.dma_copy(dst=result[row : row + 128], src=tile)
    return result


@nki.jit
def softmax_tunable(
    a,
    *,
    fused: Literal[False, True] = False,
    loads: Literal[1, 2, 4, 8] = 1,
    stores: Literal[1, 2, 4, 8] = 1,
    scaled_by: Literal["vector", "scalar", "gpsimd"] = "vector",
    scalar_share: Literal[0, 1, 2, 3] = 0,
):
    """For `neuron-profile tune`: pieces in which rows are loaded and stored, and which engine scales them.

    `scalar_share` quarters of each row are scaled by the Scalar engine, the rest by `scaled_by`.
    """
    engines = {"vector": nisa.vector_engine, "scalar": nisa.scalar_engine, "gpsimd": nisa.gpsimd_engine}
    width = a.shape[1]
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for row in range(0, a.shape[0], 128):
        tile = nl.ndarray((128, width), dtype=a.dtype, buffer=nl.sbuf)
        for part in pieces(width, loads):
            nisa.dma_copy(dst=tile[:, part], src=a[row : row + 128, part])
        top, total = column(), column()
        nisa.tensor_reduce(dst=top, op=nl.maximum, data=tile, axis=1, negate=True)
        if fused:
            nisa.activation(
                dst=tile, op=nl.exp, data=tile, bias=top,
                reduce_op=nl.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce,
            )  # fmt: skip
        else:
            nisa.activation(dst=tile, op=nl.exp, data=tile, bias=top)
            nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=1)
        nisa.reciprocal(dst=total, data=total)
        border = width * scalar_share // 4
        for part, engine in ((slice(0, border), "scalar"), (slice(border, width), scaled_by)):
            if part.start < part.stop:
                nisa.tensor_scalar(
                    dst=tile[:, part], data=tile[:, part], op0=nl.multiply, operand0=total,
                    engine=engines[engine],
                )  # fmt: skip
        for part in pieces(width, stores):
            nisa.dma_copy(dst=result[row : row + 128, part], src=tile[:, part])
    return result


def pieces(width, count):
    """A row's columns in equal parts."""
    return [slice(width * part // count, width * (part + 1) // count) for part in range(count)]


def inputs():
    """Rows of normal numbers."""
    return (np.random.default_rng(0).standard_normal((1024, 2048)).astype(np.float32),)


if __name__ == "__main__":
    (data,) = inputs()
    power = np.exp(data - data.max(axis=1, keepdims=True))
    compare([softmax_steps, softmax_fused], (data,), power / power.sum(axis=1, keepdims=True), 1e-5)
    softmax_fused(data)
