"""Small captures with real programs and known times, written by the real writer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import neuron_tools
from benchmarks.executions import write_executions
from neuron_tools import hardware
from neuron_tools.neff.kept_programs import keep_programs
from neuron_tools.profile.reader import Profile
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
    QueueKind,
)
from neuron_tools.simulator import ProgramBuilder, simulate

CORE = hardware.get("trn2")
LAUNCH_NS = round(CORE.launch_overhead_ns)
DISPATCH_NS = 1_000
FILE = "/project/train.py"
METADATA = {
    "command": ["python", "train.py"],
    "target": "trn2",
    "lnc": 1,
    "host_clock": "fixed",
    "settings": [],
}


@dataclass(frozen=True)
class Step:
    """One execution: which program, at which line the host then waits for it (0: nowhere), on which core.

    Attributes:
        write_ns: How long a copy to the device takes that comes behind it; 0: there is none.
        blocks: Whether the host waits for that copy.
    """

    program: int
    wait_line: int = 0
    core: int = 0
    write_ns: int = 0
    blocks: bool = True


def operation(name: str, line: int, module: str = "model") -> FrameworkOperation:
    """A framework operation at a line of `FILE`."""
    return FrameworkOperation(name, module, "", (Frame(FILE, line, "step"),))


def program(rows: Sequence[tuple[str, int]], build) -> Program:
    """A program with one HLO operation per (framework name, line); `build` adds the instructions.

    `build` gets the builder and a list of HLO rows.
    """
    builder = ProgramBuilder("small", target="trn2")
    hlo = []
    for number, (name, line) in enumerate(rows):
        row = builder.framework(operation(name, line))
        flops = int(name == "matmul")
        hlo.append(builder.hlo(HloOperation(f"{name}.{number}", name, (row,), (1.0,), flops)))
    build(builder, hlo)
    return builder.finish()


def write_capture(
    folder: Path, programs: Sequence[Program], steps: Sequence[Step], start_ns: int = 0
) -> Path:
    """A profile of `steps`, with times as the recorder would give them."""
    path = folder / "small.nprof"
    writer = ProfileWriter(path, METADATA)
    simulations = [simulate(each, CORE) for each in programs]
    executables = [
        Executable(number + 1, f"program{number}", "graph", each, simulation)
        for number, (each, simulation) in enumerate(zip(programs, simulations))
    ]
    now = start_ns
    free: defaultdict[int, int] = defaultdict(int)
    events, spans, executions = [], [], []
    for position, step in enumerate(steps):
        executable = executables[step.program]
        begin, now = now, now + DISPATCH_NS
        start = max(now, free[step.core]) + LAUNCH_NS
        free[step.core] = end = start + executable.duration_ns
        flow = [str(position)]
        events += [
            ("nrt_execute", begin, now, flow, step.core),
            ("nc_exec_running", start, end, flow, step.core),
        ]
        spans.append(("dispatch", executable.name, begin, now, 1))
        executions.append((step.program, start, end, step.core))
        if step.wait_line:
            end = max(now, end)
            events.append(("nrt_synchronize", now, end, [f"wait{position}"], step.core))
            spans.append(("synchronize", "synchronize", now, end, step.wait_line))
            now = end
        if step.write_ns:
            free[step.core] = max(now, free[step.core]) + step.write_ns
            end = free[step.core] if step.blocks else now + DISPATCH_NS
            events.append(("nrt_tensor_write", now, end, [f"write{position}"], step.core))
            spans.append(("copy", "aten::copy_", now, end, 1))
            now = end
    _write_events(writer, events)
    _write_spans(writer, spans)
    write_executions(writer, executables, *np.array(executions, np.int64).T)
    writer.close(True)
    keep_programs(path, 0, executables)
    return path


def open_capture(
    folder: Path, programs: Sequence[Program], steps: Sequence[Step], start_ns: int = 0
) -> Profile:
    """The same, opened."""
    return neuron_tools.open_profile(write_capture(folder, programs, steps, start_ns))


def _write_events(writer: ProfileWriter, events: list[tuple[str, int, int, list[str], int]]) -> None:
    names, starts, ends, flows, cores = map(list, zip(*events))
    count = len(events)
    host = ["neuron_hw" if name == "nc_exec_running" else "neuron_rt" for name in names]
    writer.append(
        "SystemProfileEvents",
        {
            "id": list(range(count)), "name": names, "start_ts": starts, "end_ts": ends, "flow_id": flows,
            "duration_ns": [end - start for start, end in zip(starts, ends)],
            "nc_idx": cores, "process_idx": [0] * count, "process_id": [1] * count,
            "trace_event_source": host, "extra_attributes_json": ["{}"] * count, "instance_id": ["x"] * count,
            "thread_id": [0] * count,
        },
    )  # fmt: skip


def _write_spans(writer: ProfileWriter, spans: list[tuple[str, str, int, int, int]]) -> None:
    kinds, names, starts, ends, lines = map(list, zip(*spans))
    writer.append(
        "HostSpan",
        {
            "kind": kinds, "name": names, "start_ts": starts, "end_ts": ends, "source_line": lines,
            "duration_ns": [end - start for start, end in zip(starts, ends)],
            "source_file": [FILE] * len(spans), "process_idx": [0] * len(spans),
            "thread_idx": [0] * len(spans), "layer": [""] * len(spans),
        },
    )  # fmt: skip


def products(count: int, dtype: DType = DType.BF16):
    """Adds matrix products of one dtype, each with its stationary operand."""

    def build(builder: ProgramBuilder, hlo: list[int]) -> None:
        for _ in range(count):
            for opcode in (Opcode.LDWEIGHTS, Opcode.MATMUL):
                builder.instruction(
                    Engine.TENSOR, opcode, partitions=128, columns=128, elements=512, input_dtype=dtype,
                    output_dtype=DType.F32, source_memory=Memory.SBUF, destination_memory=Memory.PSUM,
                    hlo=hlo[0],
                )  # fmt: skip

    return build


def products_taken_out(count: int, elements: int, banks: int = 1):
    """Adds products into PSUM tiles in turn, taken out by the Vector engine before a tile is used again."""

    def build(builder: ProgramBuilder, hlo: list[int]) -> None:
        tiles = [builder.tile(Memory.PSUM, 2048 * bank, 2048) for bank in range(banks)]
        free: list[list[int]] = [[] for _ in tiles]
        for number in range(count):
            bank = number % banks
            product = builder.instruction(
                Engine.TENSOR, Opcode.MATMUL, partitions=128, columns=128, elements=512,
                input_dtype=DType.BF16, output_dtype=DType.F32, source_memory=Memory.SBUF,
                destination_memory=Memory.PSUM, destination=tiles[bank], hlo=hlo[0], after=free[bank],
            )  # fmt: skip
            taken_out = builder.instruction(
                Engine.VECTOR, Opcode.TENSOR_COPY, partitions=128, elements=elements, input_dtype=DType.F32,
                output_dtype=DType.BF16, source_memory=Memory.PSUM, destination_memory=Memory.SBUF,
                source=tiles[bank], hlo=hlo[0], after=[product],
            )  # fmt: skip
            free[bank] = [taken_out]

    return build


def elementwise(count: int, partitions: int = 128, engine: Engine = Engine.VECTOR):
    """Adds elementwise instructions."""

    def build(builder: ProgramBuilder, hlo: list[int]) -> None:
        for _ in range(count):
            builder.instruction(
                engine, Opcode.TENSOR_TENSOR, partitions=partitions, elements=512, input_dtype=DType.F32,
                output_dtype=DType.F32, source_memory=Memory.SBUF, destination_memory=Memory.SBUF, hlo=hlo[0],
            )  # fmt: skip

    return build


def loads(count: int, descriptor_bytes: int, after_each: bool = False):
    """Adds loads from HBM in pieces of a size, and work on each.

    Args:
        after_each: All loads share one tile, so that the next load waits for the work.
    """

    def build(builder: ProgramBuilder, hlo: list[int]) -> None:
        queue = builder.queue("qSyncInput0", Engine.SYNC, QueueKind.DATA)
        after: list = []
        tile = builder.tile(Memory.SBUF, 0, 2048) if after_each else -1
        for _ in range(count):
            token = builder.dma(
                queue, source_memory=Memory.HBM, destination_memory=Memory.SBUF, bytes=1 << 18,
                descriptor_bytes=descriptor_bytes, partitions=128, hlo=hlo[0], after=after, tile=tile,
            )  # fmt: skip
            done = builder.instruction(
                Engine.VECTOR, Opcode.TENSOR_TENSOR, partitions=128, elements=4096, input_dtype=DType.F32,
                output_dtype=DType.F32, source_memory=Memory.SBUF, destination_memory=Memory.SBUF, hlo=hlo[0],
                after=[token], source=tile,
            )  # fmt: skip
            after = [done] if after_each else []

    return build
