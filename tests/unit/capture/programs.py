"""Small Programs for the tests."""

from neuron_tools.simulator.builder import ProgramBuilder
from neuron_tools.simulator.program import (
    DType,
    Engine,
    Frame,
    FrameworkOperation,
    HloOperation,
    Memory,
    Opcode,
    Program,
    Purpose,
    TensorKind,
)

ROWS, COLUMNS = 128, 256
BYTES = ROWS * COLUMNS * 4


def copy_and_scale(*, with_source: bool = False) -> Program:
    """Load a tensor, scale it on the Vector engine, store it: two DMAs and three instructions."""
    builder = ProgramBuilder("copy_and_scale", "trn2")
    stack = (Frame("model.py", 7, "forward"), Frame("train.py", 30, "main")) if with_source else ()
    framework = builder.framework(
        FrameworkOperation("aten::mul", "Net.scale" if with_source else "", "Scale", stack)
    )
    hlo = builder.hlo(HloOperation("multiply.1", "multiply", (framework,), (1.0,), shape="f32[128,256]"))
    source = builder.tensor("x", TensorKind.INPUT, DType.F32, (ROWS, COLUMNS))
    target = builder.tensor("y", TensorKind.OUTPUT, DType.F32, (ROWS, COLUMNS))
    tile_in = builder.tile(Memory.SBUF, 0, COLUMNS * 4, partitions=ROWS, tensor=source)
    tile_out = builder.tile(Memory.SBUF, COLUMNS * 4, COLUMNS * 4, partitions=ROWS, tensor=target)
    queue_in = builder.queue("qSyncInput0", Engine.SYNC)
    queue_out = builder.queue("qSyncOutput0", Engine.SYNC)
    common = {"partitions": ROWS, "hlo": hlo, "descriptor_bytes": COLUMNS * 4}
    load = builder.dma(
        queue_in,
        source_memory=Memory.HBM,
        destination_memory=Memory.SBUF,
        bytes=BYTES,
        purpose=Purpose.INPUT,
        tensor=source,
        tile=tile_in,
        dtype=DType.F32,
        **common,
    )
    scale = builder.instruction(
        Engine.VECTOR,
        Opcode.TENSOR_SCALAR,
        input_dtype=DType.F32,
        output_dtype=DType.F32,
        source_memory=Memory.SBUF,
        destination_memory=Memory.SBUF,
        partitions=ROWS,
        elements=COLUMNS,
        hlo=hlo,
        source=tile_in,
        destination=tile_out,
        after=[load],
    )
    builder.dma(
        queue_out,
        source_memory=Memory.SBUF,
        destination_memory=Memory.HBM,
        bytes=BYTES,
        purpose=Purpose.OUTPUT,
        tensor=target,
        tile=tile_out,
        dtype=DType.F32,
        after=[scale],
        **common,
    )
    return builder.finish()
