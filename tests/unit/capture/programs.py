"""Small Programs for the tests."""

import numpy as np

from neuron_tools.records.executable import Executable
from neuron_tools.records.program import (
    DType,
    Engine,
    Flag,
    Frame,
    FrameworkOperation,
    HloOperation,
    Memory,
    Opcode,
    Program,
    Purpose,
    QueueKind,
    TensorKind,
)
from neuron_tools.records.simulation import THROTTLE_DTYPE, Simulation
from neuron_tools.simulator.builder import ProgramBuilder

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


LAYER_FRAME, ACTIVATION_FRAME = Frame("net.py", 11, "forward"), Frame("net.py", 12, "forward")
STEP_FRAME = Frame("train.py", 40, "step")


def fused_graph() -> Program:
    """A graph of two framework operations: one fused HLO operation of both, and a copy of the second.

    Rows: 0 load trigger, 1 matmul on Tensor, 2 activation on Scalar, 3 store trigger; each waits for the one
    before. A third framework operation and a third HLO operation execute nothing.
    """
    builder = ProgramBuilder("fused_graph", "trn2")
    linear = builder.framework(
        FrameworkOperation("aten::addmm", "net.fc", "Linear", (LAYER_FRAME, STEP_FRAME))
    )
    relu = builder.framework(
        FrameworkOperation("aten::relu", "net.act", "ReLU", (ACTIVATION_FRAME, STEP_FRAME), backward=True)
    )
    builder.framework(FrameworkOperation("aten::detach"))
    fused = builder.hlo(
        HloOperation("fusion.1", "fusion", (linear, relu), (0.75, 0.25), model_flops=64, shape="f32[4,4]")
    )
    copy = builder.hlo(HloOperation("copy.2", "copy", (relu,), (1.0,), shape="f32[4,4]"))
    builder.hlo(HloOperation("constant.3", "constant", (relu,), (1.0,)))
    weight = builder.tensor("fc.weight", TensorKind.WEIGHT, DType.F32, (4, 4))
    result = builder.tensor("out", TensorKind.OUTPUT, DType.BF16, (4, 4))
    weights = builder.tile(Memory.SBUF, 0, 16, start_partition=32, partitions=4, tensor=weight)
    partial = builder.tile(Memory.PSUM, 0, 16, partitions=4)
    out = builder.tile(Memory.SBUF, 16, 8, partitions=4, tensor=result)
    load = builder.dma(
        builder.queue("qSyncWeight0", Engine.SYNC),
        source_memory=Memory.HBM,
        destination_memory=Memory.SBUF,
        bytes=64,
        descriptor_bytes=16,
        partitions=4,
        purpose=Purpose.WEIGHT,
        dtype=DType.F32,
        tensor=weight,
        tile=weights,
        hlo=fused,
    )
    matmul = builder.instruction(
        Engine.TENSOR,
        Opcode.MATMUL,
        partitions=4,
        columns=4,
        elements=4,
        input_dtype=DType.F32,
        output_dtype=DType.F32,
        source_memory=Memory.SBUF,
        destination_memory=Memory.PSUM,
        flags=Flag.ACCUMULATE,
        hlo=fused,
        source=weights,
        destination=partial,
        after=[load],
    )
    activation = builder.instruction(
        Engine.SCALAR,
        Opcode.ACTIVATE,
        partitions=4,
        elements=4,
        input_dtype=DType.F32,
        output_dtype=DType.BF16,
        source_memory=Memory.PSUM,
        destination_memory=Memory.SBUF,
        activation="relu",
        hlo=fused,
        source=partial,
        destination=out,
        after=[matmul],
    )
    builder.dma(
        builder.queue("qSyncOutput0", Engine.SYNC, QueueKind.SOFTWARE_DYNAMIC),
        source_memory=Memory.SBUF,
        destination_memory=Memory.HBM,
        bytes=32,
        descriptor_bytes=8,
        partitions=4,
        purpose=Purpose.OUTPUT,
        dtype=DType.BF16,
        tensor=result,
        tile=out,
        hlo=copy,
        after=[activation],
    )
    return builder.finish()


def fused_graph_times() -> Simulation:
    """Times of `fused_graph`, chosen by hand: whole and broken nanoseconds."""
    throttle = np.array([(0, 3_000_000, 4, 8), (3_000_000, 2_000_000, 8, 8)], THROTTLE_DTYPE)
    return Simulation(
        start_ps=np.array([0, 2_000_500, 2_300_000, 2_500_000], np.int64),
        end_ps=np.array([50_000, 2_250_999, 2_450_000, 2_550_000], np.int64),
        ready_ps=np.array([0, 0, 0, 60_000], np.int64),
        wait_cause=np.array([-1, -2, 1, 2], np.int32),
        dma_trigger_ps=np.array([0, 2_500_000], np.int64),
        dma_start_ps=np.array([1_000_000, 3_500_000], np.int64),
        dma_end_ps=np.array([2_000_000, 5_000_000], np.int64),
        throttle=throttle,
        duration_ps=5_000_000,
    )


def fused_executable(number: int = 7, kind: str = "graph") -> Executable:
    """`fused_graph` with its times as an executable."""
    return Executable(number, "step", kind, fused_graph(), fused_graph_times(), 1234)
