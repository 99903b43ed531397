"""A long capture: many executions of one program, with the rows of `synthetic_profile` and the program.

The program is kept as a capture keeps it, so that advice and what-if runs simulate it.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.executions import write_executions
from benchmarks.synthetic_profile import (
    FRAMEWORK_OPERATIONS,
    INSTRUCTIONS,
    LAYERS,
    MODULES,
    STEP_NS,
    STEP_SPANS,
    STEPS_PER_BLOCK,
    SyntheticRun,
    source_lines,
)
from neuron_tools import hardware
from neuron_tools.neff.kept_programs import keep_programs
from neuron_tools.profile.writer import ProfileWriter
from neuron_tools.records.executable import Executable
from neuron_tools.records.program import (
    DType,
    Engine,
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
from neuron_tools.simulator import ProgramBuilder, simulate

PROGRAM_INSTRUCTIONS = INSTRUCTIONS
PRODUCTS = 8
ROWS_PER_TILE = 2 * PRODUCTS + 4
TILE_BYTES = 1 << 11


def write(directory: Path, instructions: int) -> None:
    """Write a complete profile with at least that many instructions."""
    run = SyntheticRun()
    steps = -(-instructions // (INSTRUCTIONS * STEPS_PER_BLOCK)) * STEPS_PER_BLOCK
    program = make_program()
    executable = Executable(1, "step", "graph", program, simulate(program, hardware.get("trn2")))
    metadata = {"target": "trn2", "lnc": 1, "command": ["synthetic"], "host_clock": "fixed", "settings": []}
    with ProfileWriter(directory, metadata) as writer:
        writer.append("ProcessInfo", {"process_idx": [0], "rank": [0], "command": ["train.py"]})
        for table, columns in chain(source_lines(), run.blocks(steps * STEP_SPANS)):
            writer.append(table, columns)
        number = np.arange(steps, dtype=np.int64)
        ran = np.zeros(steps, np.int64)
        write_executions(writer, [executable], ran, number * STEP_NS, (number + 1) * STEP_NS)
    keep_programs(directory, 0, [executable])


def make_program() -> Program:
    """Tiles that are loaded, multiplied, activated, added and stored, in double buffers."""
    builder = ProgramBuilder("step", target="trn2")
    load = builder.queue("qSyncInput0", Engine.SYNC, QueueKind.HARDWARE_DYNAMIC)
    store = builder.queue("qGpSimdOutput0", Engine.GPSIMD, QueueKind.HARDWARE_DYNAMIC)
    weight = builder.tensor("weight", TensorKind.WEIGHT, DType.BF16, (1 << 14, 1 << 14))
    result = builder.tensor("result", TensorKind.OUTPUT, DType.BF16, (1 << 14, 1 << 14))
    tiles = PROGRAM_INSTRUCTIONS // ROWS_PER_TILE
    hlo = [_operation(builder, number) for number in range(FRAMEWORK_OPERATIONS)]
    free: list[list[int]] = [[], []]
    for number in range(tiles):
        owner, slot = hlo[number * len(hlo) // tiles], number % 2
        whole = builder.tile(Memory.SBUF, slot * TILE_BYTES, TILE_BYTES)
        sums = builder.tile(Memory.PSUM, slot * TILE_BYTES, TILE_BYTES)
        sides: dict[str, Any] = {
            "bytes": 128 * TILE_BYTES,
            "descriptor_bytes": TILE_BYTES,
            "partitions": 128,
            "tile": whole,
        }
        loaded = builder.dma(
            load, source_memory=Memory.HBM, destination_memory=Memory.SBUF, purpose=Purpose.WEIGHT,
            dtype=DType.BF16, tensor=weight, hlo=owner, after=free[slot], **sides,
        )  # fmt: skip
        for _ in range(PRODUCTS):
            for opcode in (Opcode.LDWEIGHTS, Opcode.MATMUL):
                last = builder.instruction(
                    Engine.TENSOR, opcode, partitions=128, columns=128, elements=512, input_dtype=DType.BF16,
                    output_dtype=DType.F32, source_memory=Memory.SBUF, destination_memory=Memory.PSUM,
                    source=whole, destination=sums, hlo=owner, after=[loaded],
                )  # fmt: skip
        for engine, opcode in ((Engine.SCALAR, Opcode.ACTIVATE), (Engine.VECTOR, Opcode.TENSOR_COPY)):
            last = builder.instruction(
                engine, opcode, partitions=128, elements=512, input_dtype=DType.F32, output_dtype=DType.BF16,
                source_memory=Memory.PSUM, destination_memory=Memory.SBUF, source=sums, destination=whole,
                hlo=owner, after=[last],
            )  # fmt: skip
        stored = builder.dma(
            store, source_memory=Memory.SBUF, destination_memory=Memory.HBM, purpose=Purpose.OUTPUT,
            dtype=DType.BF16, tensor=result, hlo=owner, after=[last], **sides,
        )  # fmt: skip
        free[slot] = [stored]
    return builder.finish()


def _operation(builder: ProgramBuilder, number: int) -> int:
    module = f"model.layers.{number * LAYERS // FRAMEWORK_OPERATIONS}.{MODULES[number % len(MODULES)]}"
    frames = (Frame("train.py", number % 40 + 20, "step"),)
    row = builder.framework(FrameworkOperation(f"aten::op{number % 12}", module, "", frames))
    return builder.hlo(HloOperation(f"fusion.{number}", "fusion", (row,), (1.0,)))
