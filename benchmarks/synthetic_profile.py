"""Profiles of any size with the structure of a captured training run, made faster than they are written.

    python -m benchmarks.synthetic_profile --spans 10M -o /tmp/big.nprof

One step of a compiled model is laid out once: instructions on five engines, DMA transfers that overlap on
sixteen queues, HLO and framework operations, modules and host spans. It is then repeated, later and later.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neuron_tools.arrays import Ints
from neuron_tools.capture.tables.instructions import COUNTER_COLUMNS
from neuron_tools.profile.writer import ProfileWriter

Columns = dict[str, Any]

LAYERS = 16
LINES, FIRST_LINE = 40, 20
FIRST_OPERATION = 300
INSTRUCTIONS, TRANSFERS, OPERATIONS, FRAMEWORK_OPERATIONS, HOST_SPANS = 40_000, 14_000, 800, 208, 192
STEP_SPANS = INSTRUCTIONS + TRANSFERS + OPERATIONS + FRAMEWORK_OPERATIONS + HOST_SPANS + 2
STEP_NS = 2_600_000
IDS_PER_STEP = 100_000
STEPS_PER_BLOCK = 4
QUEUES = 16
ENGINES = {"Tensor": 0.55, "Vector": 0.15, "Scalar": 0.12, "GpSimd": 0.03, "Sync": 0.15}
OPCODES = {
    "Tensor": ("LDWEIGHTS", "MATMUL"), "Vector": ("TENSOR_TENSOR", "TENSOR_SCALAR", "TENSOR_REDUCE"),
    "Scalar": ("ACTIVATE",), "GpSimd": ("IOTA", "MEMSET"), "Sync": ("DMA_TRIGGER",),
}  # fmt: skip
MODULES = (
    "attention/query",
    "attention/key",
    "attention/value",
    "attention/out",
    "mlp/up",
    "mlp/down",
    "norm",
)


@dataclass(frozen=True)
class StepTable:
    """One table's rows of a step: what is the same in every step, and what moves on with time and ids."""

    rows: int
    constant: Columns
    times: dict[str, Ints]
    ids: dict[str, Ints] = field(default_factory=dict)


class SyntheticRun:
    """The rows of a run, a block of steps at a time.

    Args:
        seed: Of the step's layout.
        ranks: Processes that run the same steps.
    """

    def __init__(self, seed: int = 0, ranks: int = 1) -> None:
        self.ranks = ranks
        random = np.random.default_rng(seed)
        instructions, transfers = _instructions(random), _transfers(random)
        operations = _operations(instructions)
        self._tables = {
            "Instruction": instructions,
            "DmaPacketAggregated": transfers,
            "HloInstruction": operations,
            "FrameworkInstruction": _framework_operations(operations),
            "HostSpan": _host_spans(),
            "SystemProfileEvents": _events(),
        }
        self._tiled = {name: _tiled(table) for name, table in self._tables.items()}

    def block(self, table: str, rank: int, first_step: int) -> Columns:
        """Columns of a table for the `STEPS_PER_BLOCK` steps from `first_step`, in execution order."""
        step, tiled = self._tables[table], self._tiled[table]
        later = np.repeat(np.arange(first_step, first_step + STEPS_PER_BLOCK, dtype=np.int64), step.rows)
        columns = dict(tiled.constant)
        columns.update({name: values + later * STEP_NS for name, values in tiled.times.items()})
        columns.update({name: values + later * IDS_PER_STEP for name, values in tiled.ids.items()})
        columns["process_idx"] = np.full(len(later), rank, np.int32)
        return columns

    def blocks(self, spans: int) -> Iterator[tuple[str, Columns]]:
        """Table and columns of blocks until there are at least that many spans."""
        written, step = 0, 0
        while written < spans:
            for rank in range(self.ranks):
                for table in self._tables:
                    yield table, self.block(table, rank, step)
                written += STEP_SPANS * STEPS_PER_BLOCK
            step += STEPS_PER_BLOCK


def write(directory: Path, spans: int, *, ranks: int = 1, seed: int = 0) -> None:
    """Write a complete profile of at least that many spans."""
    run = SyntheticRun(seed, ranks)
    with ProfileWriter(directory, {"target": "trn2", "command": ["synthetic"]}) as writer:
        numbers = np.arange(ranks, dtype=np.int32)
        writer.append(
            "ProcessInfo", {"process_idx": numbers, "rank": numbers, "command": ["train.py"] * ranks}
        )
        for table, columns in chain(source_lines(), run.blocks(spans)):
            writer.append(table, columns)


def _tiled(table: StepTable) -> StepTable:
    """The same for a block of steps; texts as Arrow dictionaries, as a capture hands them over."""
    return StepTable(
        table.rows * STEPS_PER_BLOCK,
        {name: _column(values) for name, values in table.constant.items()},
        {name: np.tile(values, STEPS_PER_BLOCK) for name, values in table.times.items()},
        {name: np.tile(values, STEPS_PER_BLOCK) for name, values in table.ids.items()},
    )


def _column(values: Any) -> pa.Array:
    if isinstance(values, np.ndarray):
        return pa.array(np.tile(values, STEPS_PER_BLOCK))
    if isinstance(values[0], list):
        return pa.array(values * STEPS_PER_BLOCK, pa.list_(pa.int64()))
    encoded = pa.array(values, pa.string()).dictionary_encode()
    codes = np.tile(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), STEPS_PER_BLOCK)
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), encoded.dictionary)


def _serial(random: np.random.Generator, rows: int, busy: float) -> tuple[Ints, Ints]:
    """Start and end of spans one after another that fill a share of a step."""
    duration = random.exponential(1.0, rows) + 0.3
    gap = random.exponential(1.0, rows) ** 2
    duration *= STEP_NS * busy / duration.sum()
    gap *= STEP_NS * (1 - busy) * 0.95 / gap.sum()
    end = np.cumsum(duration + gap).astype(np.int64)
    return end - np.maximum(duration.astype(np.int64), 1), end


def _instructions(random: np.random.Generator) -> StepTable:
    parts = []
    for number, (engine, share) in enumerate(ENGINES.items()):
        start, end = _serial(random, int(INSTRUCTIONS * share), 0.62 if engine == "Tensor" else 0.35)
        parts.append((np.full(len(start), number), start, end))
    engine, start, end = (np.concatenate(columns) for columns in zip(*parts))
    order = np.argsort(start, kind="stable")
    engine, start, end = engine[order], start[order], end[order]
    names = [list(ENGINES)[number] for number in engine]
    opcode = [OPCODES[name][place % len(OPCODES[name])] for place, name in enumerate(names)]
    rows = len(start)
    place = np.arange(rows, dtype=np.int64)
    owner = place * OPERATIONS // rows
    framework = owner * FRAMEWORK_OPERATIONS // OPERATIONS
    waits = np.where(random.random(rows) < 0.3, random.integers(1, 900, rows), 0)
    size = np.array([1 << 10, 1 << 16, 1 << 17, 0])
    constant: Columns = {
        "pc": place,
        "raw_bir_id": place,
        "pcore_idx": np.zeros(rows, np.int64),
        "evt_wait_time_ns": waits,
        "dma_wait_time_ns": np.where(engine == 4, random.integers(40, 60, rows), 0),
        "is_estimate": np.zeros(rows, bool),
        "is_backward": owner > OPERATIONS // 3,
        "source_line": (framework % LINES + FIRST_LINE).astype(np.int32),
        "engine": names,
        "timeline_track": names,
        "opcode": opcode,
        "operands": [f"dst=[128,512]@SB[{n % 97}] src=[128,512]@PS[{n % 8}]" for n in place.tolist()],
        "hlo_name": [f"fusion.{number}" for number in owner.tolist()],
        "bir_id": [f"sg0000:{number}" for number in place.tolist()],
        "tensor_instruction_type": ["REGULAR" if name == "Tensor" else None for name in names],
        "scalar_activation_fn": ["Gelu" if name == "Scalar" else None for name in names],
        **_origin(framework),
        "stack_frame_ids": [str(1 + number % LINES) for number in framework.tolist()],
        **{name: size[(engine + number) % 4] for number, name in enumerate(COUNTER_COLUMNS)},
    }
    ids = {
        "id": 2000 + place,
        "raw_hlo_id": FIRST_OPERATION + owner,
        "raw_framework_id": 1 + framework,
        "wait_cause_id": 2000 + np.maximum(place - 7, 0),
    }
    constant["duration_ns"] = end - start
    return StepTable(rows, constant, {"start_ts": start, "end_ts": end}, ids)


def _transfers(random: np.random.Generator) -> StepTable:
    """Transfers that overlap on each queue, in order of start."""
    rows = TRANSFERS
    place = np.arange(rows, dtype=np.int64)
    start = np.sort(random.integers(0, int(STEP_NS * 0.97), rows))
    duration = 1300 + (random.lognormal(7.2, 0.5, rows)).astype(np.int64)
    queue = random.integers(0, QUEUES, rows)
    owner = place * OPERATIONS // rows
    bytes_moved = np.array([1 << 12, 1 << 14, 1 << 16, 1 << 18])[random.integers(0, 4, rows)]
    loads = random.random(rows) < 0.7
    shape = [f"[128,{size // 128}]" for size in bytes_moved.tolist()]
    constant: Columns = {
        "pcore_idx": np.zeros(rows, np.int64),
        "block_id": place.astype(np.int32),
        "queue_idx": queue,
        "queue_name": [f"qSyncIn{number}" for number in queue.tolist()],
        "queue_type": ["hardware_dynamic"] * rows,
        "op": ["load" if load else "store" for load in loads.tolist()],
        "variable": [f"weight.{number}" for number in (owner % 400).tolist()],
        **dict.fromkeys(("read_bytes", "write_bytes", "transfer_bytes"), bytes_moved),
        "throughput": np.round(bytes_moved * 1e9 / duration),
        "source": ["HBM" if load else "SBUF" for load in loads.tolist()],
        "dest": ["SBUF" if load else "HBM" for load in loads.tolist()],
        "semaphore_id": [f"S[{number}]" for number in (place % 64).tolist()],
        **{f"{side}_{name}": shape for side in ("read", "write") for name in ("shape", "steps")},
        **dict.fromkeys(("read_offset", "write_offset"), ["0"] * rows),
        **dict.fromkeys(("read_sbuf_partitions", "write_sbuf_partitions"), ["0-127"] * rows),
        **dict.fromkeys(
            ("read_num_sbuf_partitions", "write_num_sbuf_partitions"), np.full(rows, 128, np.int32)
        ),
        "packet_count": np.full(rows, 128, np.int64),
        "hlo_name": [f"fusion.{number}" for number in owner.tolist()],
        **_origin(owner * FRAMEWORK_OPERATIONS // OPERATIONS),
    }
    ids = {"id": 60_000 + place, "trigger": 2000 + place * 2, "raw_hlo_id": FIRST_OPERATION + owner}
    constant["duration_ns"] = duration
    return StepTable(rows, constant, {"start_ts": start, "end_ts": start + duration}, ids)


def _origin(framework: Ints) -> Columns:
    """Module, operation and file of rows that belong to framework operations."""
    layer = [number * LAYERS // FRAMEWORK_OPERATIONS for number in framework.tolist()]
    return {
        "layer": [
            f"/model/layers/{deep}/{MODULES[number % len(MODULES)]}"
            for deep, number in zip(layer, framework.tolist())
        ],
        "framework_name": [f"aten::op{number % 12}" for number in framework.tolist()],
        "source_file": ["train.py"] * len(framework),
    }


def source_lines() -> Iterator[tuple[str, Columns]]:
    """The source lines of the run, each a stack of its own."""
    numbers = np.arange(LINES)
    ids = [str(1 + number) for number in range(LINES)]
    yield "StackFrameFileName", {"id": ["1"], "name": ["train.py"]}
    yield "StackFrameFunctionName", {"id": ["1"], "name": ["step"]}
    location = {
        "id": ids,
        "file_name_id": np.ones(LINES, np.int64),
        "function_name_id": np.ones(LINES, np.int64),
    }
    yield "StackFrameFileLocation", {**location, "line_number": FIRST_LINE + numbers}
    yield "StackFrame", {"id": ids, "file_location_id": 1 + numbers, "parent_frame_id": [""] * LINES}


def _level(
    rows: int, first_id: int, parts: StepTable, owner: Ints
) -> tuple[Columns, dict[str, Ints], dict[str, Ints]]:
    """Columns that HLO and framework operations share: each lasts from its first part to its last.

    Args:
        parts: What the operations consist of.
        owner: The operation of each part.
    """
    place = np.arange(rows, dtype=np.int64)
    start, end = np.full(rows, STEP_NS), np.zeros(rows, np.int64)
    np.minimum.at(start, owner, parts.times["start_ts"])
    np.maximum.at(end, owner, parts.times["end_ts"])
    none = np.zeros(rows, np.int64)
    columns: Columns = {
        **dict.fromkeys(("raw_bir_id", "raw_penguin_id", "hbm_read_bytes", "hbm_write_bytes"), none),
        **dict.fromkeys(("pcore_idx", "sbuf_read_bytes", "sbuf_write_bytes"), none),
        "time_intervals": ["[]"] * rows,
        **{
            f"{name}_per_interval": [[0]] * rows
            for name in ("element_count", "transpose_element_count", "hbm_transfer_size")
        },
    }
    return columns, {"start_ts": start, "end_ts": end}, {"id": first_id + place}


def _operations(instructions: StepTable) -> StepTable:
    owner = instructions.ids["raw_hlo_id"] - FIRST_OPERATION
    columns, times, ids = _level(OPERATIONS, FIRST_OPERATION, instructions, owner)
    framework = np.arange(OPERATIONS, dtype=np.int64) * FRAMEWORK_OPERATIONS // OPERATIONS
    columns |= {"hlo_name": [f"fusion.{number}" for number in range(OPERATIONS)], **_origin(framework)}
    ids |= {"raw_hlo_id": ids["id"], "raw_framework_id": 1 + framework}
    return StepTable(OPERATIONS, columns, times, ids)


def _framework_operations(operations: StepTable) -> StepTable:
    owner = operations.ids["raw_framework_id"] - 1
    columns, times, ids = _level(FRAMEWORK_OPERATIONS, 1, operations, owner)
    columns |= _origin(np.arange(FRAMEWORK_OPERATIONS, dtype=np.int64))
    columns["is_backward"] = np.arange(FRAMEWORK_OPERATIONS) > FRAMEWORK_OPERATIONS // 3
    ids |= {
        "raw_hlo_id": FIRST_OPERATION + np.arange(FRAMEWORK_OPERATIONS) * 3,
        "raw_framework_id": ids["id"],
    }
    return StepTable(FRAMEWORK_OPERATIONS, columns, times, ids)


def _host_spans() -> StepTable:
    """A step, the layers in it, and calls in those."""
    inner = HOST_SPANS - LAYERS - 1
    length = STEP_NS * 9 // 10
    layer, call = np.arange(LAYERS, dtype=np.int64), np.arange(inner, dtype=np.int64)
    per_layer = -(-inner // LAYERS)
    layer_start = layer * length // LAYERS
    call_start = layer_start[call // per_layer] + (call % per_layer) * (length // LAYERS // per_layer)
    start = np.concatenate([[0], layer_start, call_start])
    duration = np.concatenate(
        [[length], np.full(LAYERS, length // LAYERS), np.full(inner, length // LAYERS // per_layer * 4 // 5)]
    )
    constant: Columns = {
        "thread_idx": np.zeros(HOST_SPANS, np.int32),
        "name": [
            "step",
            *(f"model.layers.{n}" for n in range(LAYERS)),
            *(f"aten::op{n % 12}" for n in range(inner)),
        ],
        "kind": ["step", *["module"] * LAYERS, *["dispatch"] * inner],
    }
    constant["duration_ns"] = duration
    return StepTable(HOST_SPANS, constant, {"start_ts": start, "end_ts": start + duration})


def _events() -> StepTable:
    constant: Columns = {
        "name": ["nrt_execute", "nc_exec_running"],
        "trace_event_source": ["neuron_rt", "neuron_hw"],
        "instance_id": ["simulated"] * 2,
        "process_id": np.ones(2, np.int64),
        "thread_id": np.zeros(2, np.int64),
        "nc_idx": np.zeros(2, np.int64),
    }
    start, end = np.zeros(2, np.int64), np.array([STEP_NS // 50, STEP_NS])
    constant["duration_ns"] = end - start
    return StepTable(2, constant, {"start_ts": start, "end_ts": end}, {"id": np.array([99_000, 99_001])})


def parse_count(text: str) -> int:
    """A number of spans such as 250000, 10M or 2.5k."""
    factor = {"k": 1_000, "m": 1_000_000, "g": 1_000_000_000}.get(text[-1:].lower(), 1)
    return int(float(text[:-1] if factor > 1 else text) * factor)


def main() -> None:
    """Reads the command line and writes the profile."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spans", type=parse_count, default=1_000_000, help="such as 1M")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, required=True, help="NAME.nprof, which must not exist")
    options = parser.parse_args()
    write(options.output, options.spans, ranks=options.ranks)


if __name__ == "__main__":
    main()
