"""Speed, memory and linearity of the simulator, and the time of its first compilation."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tracemalloc
from time import process_time

import numpy as np
import numpy.typing as npt

from benchmarks.figures import Figure, Target
from neuron_tools import hardware
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.program import (
    DMA_DTYPE,
    INSTRUCTION_DTYPE,
    DType,
    Engine,
    Memory,
    Opcode,
    Program,
    QueueKind,
    empty_table,
)
from neuron_tools.simulator import ProgramBuilder, simulate
from neuron_tools.simulator.builder import dma_token

STEP_ROWS = 40
"""Instructions of one step: a load, 16 LDWEIGHTS and MATMULs, 4 Vector and 3 Scalar instructions."""

MATMUL_END, VECTOR_END = 33, 37
COMPILE = (
    "from time import process_time as now; from neuron_tools import hardware; begin = now();"
    "from benchmarks.simulator import pipelined_program as make; from neuron_tools.simulator import simulate;"
    "simulate(make(400), hardware.get('trn2')); print(now() - begin)"
)


def run(quick: bool = False) -> list[Figure]:
    """All figures; `quick` leaves out the largest Program."""
    core = hardware.get("trn2")
    simulate(pipelined_program(400), core)
    sizes = (10_000, 100_000, 1_000_000) if quick else (10_000, 100_000, 1_000_000, 10_000_000)
    seconds = {size: simulation_seconds(pipelined_program(size), core) for size in sizes}
    rates = [
        Figure(
            f"rate at {size:.0e} instructions",
            size / taken / 1e6,
            "M instructions/s",
            Target(">=", 5, "compiled"),
        )
        for size, taken in seconds.items()
    ]
    smallest, largest = sizes[0], sizes[-1]
    growth = (seconds[largest] / largest) / (seconds[smallest] / smallest)
    return [
        *rates,
        Figure("time per instruction, largest over smallest", growth, "ratio", Target("<=", 2)),
        Figure("memory", bytes_per_instruction(core), "bytes/instruction", Target("<=", 200)),
        Figure(
            "first compilation",
            compilation_seconds(),
            "s",
            Target("<=", 15, "python"),
            note="CPU time, empty cache",
        ),
    ]


def pipelined_program(rows: int) -> Program:
    """A program of loads, matmuls, Vector and Scalar work that overlap across engines.

    Args:
        rows: Instructions; rounded down to whole steps.
    """
    steps = rows // STEP_ROWS
    build = ProgramBuilder("pipelined", target="trn2")
    for index in range(4):
        build.queue(f"qSyncIn{index}", Engine.SYNC, QueueKind.HARDWARE_DYNAMIC)
    build.instructions(_instructions(steps), dmas=_loads(steps))
    first = np.arange(steps) * STEP_ROWS
    build.depend(first + 1, dma_token(0) - np.arange(steps))
    build.depend(first + MATMUL_END, first + MATMUL_END - 1)
    build.depend(first + VECTOR_END, first + VECTOR_END - 1)
    build.depend(first[2:] + 1, first[:-2] + STEP_ROWS - 1)
    build.depend(first[4:], first[:-4] + MATMUL_END - 1)
    return build.finish()


def simulation_seconds(program: Program, core: NeuronCore) -> float:
    """Least CPU time of three simulations (one of a large Program)."""
    taken = []
    for _ in range(3 if len(program.instructions) < 5_000_000 else 1):
        begin = process_time()
        simulate(program, core)
        taken.append(process_time() - begin)
    return min(taken)


def bytes_per_instruction(core: NeuronCore) -> float:
    """Peak memory of a simulation, with the Program's own tables, by instruction."""
    program = pipelined_program(400_000)
    tables = program.instructions.nbytes + program.waits.nbytes + program.dmas.nbytes
    tracemalloc.start()
    simulate(program, core)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (peak + tables) / len(program.instructions)


def compilation_seconds() -> float:
    """CPU time of the first simulation of a process that finds no compiled code."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        done = subprocess.run(
            [sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True, check=True
        )
    return float(done.stdout)


def _instructions(steps: int) -> npt.NDArray[np.void]:
    table = empty_table(INSTRUCTION_DTYPE, steps * STEP_ROWS)
    place = np.arange(len(table)) % STEP_ROWS
    load, matmul, vector = place == 0, (place > 0) & (place < MATMUL_END), place < VECTOR_END
    table["engine"] = np.select(
        [load, matmul, vector], [Engine.SYNC, Engine.TENSOR, Engine.VECTOR], Engine.SCALAR
    )
    table["opcode"] = np.select(
        [load, matmul & (place % 2 == 1), matmul, vector],
        [Opcode.DMA_TRIGGER, Opcode.LDWEIGHTS, Opcode.MATMUL, Opcode.TENSOR_TENSOR],
        Opcode.ACTIVATE,
    )
    table["input_dtype"] = table["output_dtype"] = DType.BF16
    table["source_memory"] = Memory.SBUF
    table["destination_memory"] = np.where(matmul, Memory.PSUM, Memory.SBUF)
    table["partitions"], table["elements"] = 128, 512
    table["columns"] = np.where(matmul, 128, 0)
    table["dma"] = np.where(load, np.arange(len(table)) // STEP_ROWS, -1)
    return table


def _loads(steps: int) -> npt.NDArray[np.void]:
    table = empty_table(DMA_DTYPE, steps)
    table["queue"] = np.arange(steps) % 4
    table["source_memory"], table["destination_memory"] = Memory.HBM, Memory.SBUF
    table["bytes"], table["descriptor_bytes"] = 128 * 2048, 2048
    table["descriptors"] = table["partitions"] = 128
    return table
