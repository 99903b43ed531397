"""Single instructions and DMAs, each in a Program of its own."""

from __future__ import annotations

from benchmarks.fidelity_kernels.kernel import DTYPES, Kernel
from benchmarks.fidelity_kernels.measurement import Measurement
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode, Program

INSTRUCTIONS = {
    "activate": (Engine.SCALAR, Opcode.ACTIVATE, Memory.PSUM),
    "act_table_load": (Engine.SCALAR, Opcode.ACT_TABLE_LOAD, Memory.NONE),
    "tensor_tensor": (Engine.VECTOR, Opcode.TENSOR_TENSOR, Memory.SBUF),
    "load_weights": (Engine.TENSOR, Opcode.LDWEIGHTS, Memory.SBUF),
    "matmul_instruction": (Engine.TENSOR, Opcode.MATMUL, Memory.SBUF),
    "event_semaphore": (Engine.SYNC, Opcode.EVENT_SEMAPHORE, Memory.NONE),
}
WARM_UP = 64
"""Matmuls before the measured ones: the Tensor engine starts under a limit on some generations."""


def instruction(row: Measurement) -> Program:
    """The row's instruction twice: the first one's duration and the time to the second can be read off.

    A chain through one tile where the row says so (the interval of dependent activations).
    """
    kernel = Kernel(row.kernel, row.target, DTYPES[row.dtype])
    if row.kernel == "instruction":
        engine, opcode = Engine[row.parameters["engine"]], Opcode[row.parameters["opcode"]]
        source = Memory[row.parameters["source"]]
    else:
        engine, opcode, source = INSTRUCTIONS[row.kernel]
    if engine == Engine.TENSOR and opcode != Opcode.EVENT_SEMAPHORE:
        _warm_up(kernel)
    tile = kernel.sbuf(1, 1)[0].tile
    chained = row.kernel == "activate"
    for _ in range(2):
        kernel.build.instruction(
            engine, opcode, partitions=row.size("partitions") or 128, columns=row.size("columns"),
            elements=row.size("elements"), input_dtype=kernel.dtype, output_dtype=kernel.dtype,
            source_memory=source, destination_memory=Memory.SBUF, flags=Flag(row.size("flags")),
            source=tile if chained else -1, destination=tile if chained else -1,
        )  # fmt: skip
    return kernel.finish()


def dma(row: Measurement) -> Program:
    """One load as the row describes it."""
    kernel = Kernel(row.kernel, row.target, DType.BF16)
    size = row.size("row_bytes") or row.size("bytes")
    rows = row.size("rows") or max(row.size("bytes") // size, 1)
    one_engine = row.kernel in ("dma_one_engine", "dma_engine_share", "dma_packet")
    kernel.build.dma(
        kernel.loads, source_memory=Memory.HBM, destination_memory=Memory.SBUF, bytes=rows * size,
        descriptor_bytes=size, partitions=1 if one_engine else rows,
    )  # fmt: skip
    return kernel.finish()


def reload(row: Measurement) -> Program:
    """A spilled tile comes back: 128 partitions of equal shares."""
    kernel = Kernel(row.kernel, row.target, DType.BF16)
    share = row.size("bytes") // 128
    kernel.load(kernel.sbuf(1, share // 2)[0], share, strided=False)
    return kernel.finish()


def _warm_up(kernel: Kernel) -> None:
    for _ in range(WARM_UP):
        kernel.build.instruction(
            Engine.TENSOR, Opcode.MATMUL, partitions=128, columns=128, elements=512, input_dtype=DType.BF16,
            source_memory=Memory.SBUF,
        )  # fmt: skip
