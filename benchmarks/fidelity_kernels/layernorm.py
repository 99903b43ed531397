"""The two LayerNorm kernels of the NKI tutorial (aws-neuron/nki-samples tutorials/layernorm), fp32.

The input tile is changed in place up to the last addition, which writes the output tile; the next input has a
buffer of its own where it fits.
"""

from __future__ import annotations

from benchmarks.fidelity_kernels.kernel import Kernel, Ring, Slot
from neuron_tools.records.program import DType, Engine, Opcode, Program

STATISTICS = 512
"""Most elements of one bn_stats."""


def with_language(target: str, rows: int, columns: int) -> Program:
    """Version 1: means of x and of its square, then four passes over the row."""
    kernel = Kernel("layernorm_v1", target, DType.F32)
    gamma, beta = kernel.sbuf(2, columns)
    mean, variance, scale = kernel.sbuf(3, 1)
    squares = Ring(kernel.sbuf(1, columns))
    tiles, outputs = _rings(kernel, columns)
    _load_parameters(kernel, (gamma, beta), columns)
    for _ in range(-(-rows // 128)):
        tile, square = tiles.take(), squares.take()
        kernel.load(tile, 4 * columns, strided=False)
        kernel.compute(Engine.VECTOR, Opcode.TENSOR_REDUCE, mean, [tile], elements=columns)
        kernel.compute(Engine.SCALAR, Opcode.ACTIVATE, square, [tile], elements=columns)
        kernel.compute(Engine.VECTOR, Opcode.TENSOR_REDUCE, variance, [square], elements=columns)
        _scale_of(kernel, mean, variance, scale)
        kernel.compute(Engine.VECTOR, Opcode.TENSOR_SCALAR, tile, [tile, scale], elements=columns)
        _affine(kernel, tile, outputs.take(), gamma, beta, columns)
    return kernel.finish()


def with_instructions(target: str, rows: int, columns: int) -> Program:
    """Version 2: bn_stats and bn_aggr for mean and variance, one tensor_scalar for shift and scale."""
    kernel = Kernel("layernorm_v2", target, DType.F32)
    gamma, beta = kernel.sbuf(2, columns)
    pieces = -(-columns // STATISTICS)
    statistics, mean, scale = kernel.sbuf(1, 6 * pieces)[0], *kernel.sbuf(2, 1)
    tiles, outputs = _rings(kernel, columns)
    _load_parameters(kernel, (gamma, beta), columns)
    for _ in range(-(-rows // 128)):
        tile = tiles.take()
        kernel.load(tile, 4 * columns, strided=False)
        for first in range(0, columns, STATISTICS):
            kernel.compute(
                Engine.VECTOR, Opcode.BN_STATS, statistics, [tile], elements=min(STATISTICS, columns - first)
            )
        kernel.compute(Engine.VECTOR, Opcode.BN_AGGREGATE, mean, [statistics], elements=6 * pieces)
        kernel.compute(Engine.SCALAR, Opcode.ACTIVATE, scale, [mean], elements=1)
        kernel.compute(Engine.VECTOR, Opcode.TENSOR_SCALAR, tile, [tile, scale], elements=columns)
        _affine(kernel, tile, outputs.take(), gamma, beta, columns)
    return kernel.finish()


def _load_parameters(kernel: Kernel, parameters: tuple[Slot, Slot], columns: int) -> None:
    """Each is one row in HBM, read once for every partition."""
    for slot in parameters:
        kernel.load(slot, 4 * columns)


def _scale_of(kernel: Kernel, mean: Slot, variance: Slot, scale: Slot) -> None:
    for opcode, inputs in (
        (Opcode.TENSOR_TENSOR, [mean, mean]),
        (Opcode.TENSOR_TENSOR, [variance, mean]),
    ):
        kernel.compute(Engine.VECTOR, opcode, variance, inputs, elements=1)
    kernel.compute(Engine.SCALAR, Opcode.ACTIVATE, scale, [variance], elements=1)


def _rings(kernel: Kernel, columns: int) -> tuple[Ring, Ring]:
    outputs = Ring(kernel.sbuf(1, columns))
    return Ring(kernel.sbuf(min(2, kernel.sbuf_free // (4 * columns)), columns)), outputs


def _affine(kernel: Kernel, tile: Slot, output: Slot, gamma: Slot, beta: Slot, columns: int) -> None:
    kernel.compute(Engine.VECTOR, Opcode.TENSOR_TENSOR, tile, [tile, gamma], elements=columns)
    kernel.compute(Engine.VECTOR, Opcode.TENSOR_TENSOR, output, [tile, beta], elements=columns)
    kernel.store(output, 4 * columns, strided=False)
