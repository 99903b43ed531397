"""A profile of two engines, three queues, modules and a counter, with times that are easy to reckon with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from neuron_tools.profile.schema import TABLES
from neuron_tools.profile.writer import ProfileWriter

INSTRUCTIONS = 600
LAYERS = ("/model/a", "/model/a/inner", "/model/b")


def write_small_profile(path: Path, duration_ns: int = 6) -> Path:
    """Instructions every 10 ns, in turn on two engines; each third waits for the one before it."""
    place = np.arange(INSTRUCTIONS)
    with ProfileWriter(path, {"target": "trn2"}) as writer:
        writer.append("ProcessInfo", {"process_idx": np.zeros(1, np.int32), "command": ["train.py"]})
        writer.append("Instruction", filled("Instruction", _instructions(place, duration_ns)))
        writer.append("HloInstruction", filled("HloInstruction", _operations()))
        writer.append("DmaPacketAggregated", filled("DmaPacketAggregated", _transfers()))
        writer.append("PendingDma", filled("PendingDma", _samples()))
    return path


def filled(table: str, columns: dict[str, Any]) -> dict[str, Any]:
    """Columns with those that the table needs besides, all empty."""
    schema = TABLES[table]
    rows = len(next(iter(columns.values())))
    empty = {"string": "", "bool": False, "float64": 0.0}
    missing = [name for name in schema.required if name not in columns]
    return columns | {
        name: [
            [] if schema.by_name[name].type.startswith("list") else empty.get(schema.by_name[name].type, 0)
        ]
        * rows
        for name in missing
    }


def _samples() -> dict[str, Any]:
    return {
        "timestamp": np.arange(0, 6000, 100),
        "value": np.arange(60, dtype=np.int64) % 7,
        "pcore_idx": np.zeros(60, np.int64),
        "process_idx": np.zeros(60, np.int32),
    }


def _instructions(place: Any, duration_ns: int) -> dict[str, Any]:
    start = place * 10
    return {
        "id": 1000 + place,
        "start_ts": start,
        "end_ts": start + duration_ns,
        "duration_ns": np.full(len(place), duration_ns),
        "engine": ["Tensor" if number % 2 else "Vector" for number in place],
        "opcode": ["MATMUL" if number % 2 else "<script>alert(1)</script>" for number in place],
        "pcore_idx": np.zeros(len(place), np.int64),
        "process_idx": np.zeros(len(place), np.int32),
        "raw_hlo_id": 1 + place // 60,
        "hlo_name": [f"fusion.{number // 60}" for number in place],
        "layer": [LAYERS[number // 200] for number in place],
        "source_file": ["train.py"] * len(place),
        "source_line": (place % 5 + 1).astype(np.int32),
        "wait_cause_id": [1000 + number - 1 if number % 3 == 2 else None for number in place.tolist()],
        "evt_wait_time_ns": np.where(place % 3 == 2, 4, 0),
    }


def _operations() -> dict[str, Any]:
    place = np.arange(10)
    return {
        "id": 1 + place,
        "raw_hlo_id": 1 + place,
        "start_ts": place * 600,
        "end_ts": place * 600 + 596,
        "hlo_name": [f"fusion.{number}" for number in place],
        "layer": [LAYERS[number * 60 // 200] for number in place],
        "pcore_idx": np.zeros(10, np.int64),
        "process_idx": np.zeros(10, np.int32),
    }


def _transfers() -> dict[str, Any]:
    """On one queue, each overlaps the next."""
    place = np.arange(40)
    return {
        "id": 5000 + place,
        "start_ts": place * 150,
        "end_ts": place * 150 + 200,
        "duration_ns": np.full(40, 200),
        "queue_name": ["qSyncIn0"] * 40,
        "packet_count": np.where(place < 4, 16, 1),
        "transfer_bytes": np.full(40, 1024),
        "variable": [f"weight.{number}" for number in place],
        "raw_hlo_id": 1 + place // 4,
        "pcore_idx": np.zeros(40, np.int64),
        "process_idx": np.zeros(40, np.int32),
    }
