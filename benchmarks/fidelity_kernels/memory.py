"""Bandwidth microbenchmarks: tiles streamed from HBM, to HBM, and from HBM to HBM (pantheonneuron)."""

from __future__ import annotations

from benchmarks.fidelity_kernels.kernel import Kernel, Ring
from neuron_tools.records.program import DType, Engine, Memory, Opcode, Program

STREAM_BYTES = 512 << 20
"""Enough that launch and drain weigh less than a thousandth; the measured streams are longer."""


def read(target: str, row_bytes: int, depth: int = 4) -> Program:
    """Load tiles of 128 rows that follow one another in HBM, and reduce each."""
    kernel = Kernel("hbm_read", target, DType.BF16)
    elements = row_bytes // 2
    tiles, sums = Ring(kernel.sbuf(max(4, depth), elements)), Ring(kernel.sbuf(2, 1))
    for _ in range(STREAM_BYTES // (128 * row_bytes)):
        tile = tiles.take()
        kernel.load(tile, row_bytes, strided=False)
        kernel.compute(Engine.VECTOR, Opcode.TENSOR_REDUCE, sums.take(), [tile], elements=elements)
    return kernel.finish()


def write(target: str, row_bytes: int) -> Program:
    """Store one tile over and over."""
    kernel = Kernel("hbm_write", target, DType.BF16)
    tile = kernel.sbuf(1, row_bytes // 2)[0]
    kernel.compute(Engine.VECTOR, Opcode.MEMSET, tile, [], elements=row_bytes // 2)
    for _ in range(STREAM_BYTES // (128 * row_bytes)):
        tile.readers = ()
        kernel.store(tile, row_bytes, strided=False)
    return kernel.finish()


def copy(target: str, row_bytes: int) -> Program:
    """Move rows within HBM."""
    kernel = Kernel("hbm_copy", target, DType.BF16)
    for _ in range(STREAM_BYTES // (128 * row_bytes)):
        kernel.build.dma(
            kernel.loads, source_memory=Memory.HBM, destination_memory=Memory.HBM, bytes=128 * row_bytes,
            descriptor_bytes=row_bytes,
        )  # fmt: skip
    return kernel.finish()
