"""Small profiles made of a few rows, for tests of the store, the derived tables and the checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from neuron_tools.profile.derive import derive_tables
from neuron_tools.profile.schema import TABLES
from neuron_tools.profile.store.recorded import RecordedTables
from neuron_tools.profile.writer import ProfileWriter

Row = dict[str, Any]
Tables = dict[str, list[Row]]

# A NeuronCore whose figures divide well: 2 x 10 x 10 x 1 GHz = 200 GFLOPS, 100 GB/s.
METADATA_ROW: Row = {
    "profile_schema_version": "7.4.0",
    "ntff_version": 6,
    "num_physical_cores": 1,
    "vnc_enabled": False,
    "first_hw_timestamp": 0,
    "last_hw_timestamp": 0,
    "first_ts": "1970-01-01T00:00:00Z",
    "last_ts": "1970-01-01T00:00:00Z",
    "dma_ddr_bandwidth": 50e9,
    "num_dma_engines_per_neuroncore": 16,
    "hbm_ddr_bandwidth": 100e9,
    "tensor_engine_num_rows": 10,
    "tensor_engine_num_cols": 10,
    "tensor_engine_clock_freq": 1.0,
    "vector_engine_clock_freq": 1.0,
    "vector_engine_num_channels": 128,
    "scalar_engine_clock_freq": 1.0,
    "scalar_engine_num_channels": 128,
    "gpsimd_engine_clock_freq": 1.0,
    "gpsimd_engine_num_channels": 128,
    "neuroncore_clock_freq": 2.0,
    "ticks_per_nanosec": 1000,
    "is_simulation": True,
}


def instruction(engine: str, start: int, end: int, opcode: str = "MATMUL", **more: Any) -> Row:
    """An Instruction row of core 0 of process 0, without an id."""
    return {
        **_span(start, end),
        "engine": engine,
        "opcode": opcode,
        "operands": "",
        "pc": 0,
        "bir_id": "",
        **more,
    }


def dma(start: int, end: int, size: int = 64, source: str = "HBM", dest: str = "SBUF", **more: Any) -> Row:
    """A DmaPacketAggregated row, without an id."""
    texts = ("variable", "semaphore_id", "read_sbuf_partitions", "read_shape", "read_offset", "read_steps")
    written = ("write_sbuf_partitions", "write_shape", "write_offset", "write_steps")
    return {
        **_span(start, end),
        **dict.fromkeys((*texts, *written), ""),
        "block_id": 0,
        "queue_idx": 0,
        "queue_name": "qSyncIn0",
        "queue_type": "input",
        "op": "input",
        **dict.fromkeys(("read_bytes", "write_bytes", "transfer_bytes"), size),
        "throughput": size * 1e9 / max(end - start, 1),
        "source": source,
        "dest": dest,
        "read_num_sbuf_partitions": 0,
        "write_num_sbuf_partitions": 128,
        **more,
    }


def level(table: str, start: int, end: int, id: int, **more: Any) -> Row:
    """A row of one of the hierarchy's tables: HloInstruction, FrameworkInstruction, ..."""
    names = {"HloInstruction": {"hlo_name": f"hlo.{id}"}}.get(table, {})
    row = _span(start, end)
    del row["duration_ns"]
    return {
        **row,
        **names,
        "id": id,
        **dict.fromkeys(("raw_bir_id", "raw_penguin_id", "hbm_read_bytes", "hbm_write_bytes"), 0),
        "raw_hlo_id": id,
        "raw_framework_id": id,
        "time_intervals": f"[[{start},{end}]]",
        "element_count_per_interval": [0],
        "transpose_element_count_per_interval": [0],
        "hbm_transfer_size_per_interval": [0],
        **more,
    }


def _span(start: int, end: int) -> Row:
    return {
        "start_ts": start,
        "end_ts": end,
        "duration_ns": end - start,
        "process_idx": 0,
        "pcore_idx": 0,
    }


def columns(rows: Iterable[Row]) -> dict[str, list[Any]]:
    """Rows as columns; what a row lacks is null."""
    rows = list(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: [row.get(name) for row in rows] for name in names}


def numbered(table: str, rows: list[Row]) -> list[Row]:
    """Rows with ids counted from 1 where they have none."""
    if "id" not in TABLES[table].required or table in ("SemaphoreUpdate",):
        return rows
    return [{"id": number, **row} for number, row in enumerate(rows, 1)]


def write_profile(
    directory: Path, tables: Mapping[str, list[Row]], *, derive: bool = True, complete: bool = True
) -> Path:
    """Write tables (Metadata is added) and what follows from them."""
    writer = ProfileWriter(directory, {"target": "trn2"})
    for name, rows in {"Metadata": [METADATA_ROW], **tables}.items():
        writer.append(name, columns(numbered(name, rows)))
    if derive:
        derive_tables(directory, writer)
    writer.close(complete=complete)
    return directory


def derived(directory: Path, tables: Mapping[str, list[Row]], query: str) -> list[tuple[Any, ...]]:
    """Rows of a query over a profile that was written with its derived tables."""
    with RecordedTables(write_profile(directory, tables)) as recorded:
        return [tuple(row.values()) for row in recorded.rows(query)]


def sound_tables() -> Tables:
    """A profile that keeps every rule: one module, one operation, a load, a matmul and an activation."""
    origin = {"raw_hlo_id": 1, "raw_framework_id": 1, "layer": "/model/fc", "stack_frame_ids": "2"}
    return {
        "Instruction": [
            instruction("Sync", 0, 5, "DMA_TRIGGER", id=1, **origin),
            instruction("Tensor", 60, 100, "MATMUL", id=2, raw_flops=800, wait_cause_id=10, **origin),
            instruction("Scalar", 105, 130, "ACTIVATE", id=3, wait_cause_id=2, **origin),
        ],
        "DmaPacketAggregated": [dma(10, 60, id=10, layer="/model/fc", trigger=1)],
        "HloInstruction": [level("HloInstruction", 0, 130, 1, model_flops=800)],
        "FrameworkInstruction": [level("FrameworkInstruction", 0, 130, 1, stack_frame_ids="2")],
        "ExecutionInfo": [
            {
                "execution_index": 0,
                "execution_start_ts": 0,
                "execution_end_ts": 140,
                "process_idx": 0,
                "pcore_idx": 0,
            }
        ],
        "Flow": [
            {"in_id": 10, "out_id": 2, "in_table": "DmaPacketAggregated", "out_table": "Instruction"},
            {"in_id": 2, "out_id": 3, "in_table": "Instruction", "out_table": "Instruction"},
        ],
        "StackFrame": [
            {"id": "1", "file_location_id": 1, "parent_frame_id": ""},
            {"id": "2", "file_location_id": 1, "parent_frame_id": "1"},
        ],
        "StackFrameFileLocation": [{"id": "1", "file_name_id": 1, "function_name_id": 1, "line_number": 7}],
        "StackFrameFileName": [{"id": "1", "name": "train.py"}],
        "StackFrameFunctionName": [{"id": "1", "name": "step"}],
    }
