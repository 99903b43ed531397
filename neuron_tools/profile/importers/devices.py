"""What a trace tells of the devices themselves: rows of Device."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from neuron_tools.profile.importers.json_text import whole_number
from neuron_tools.profile.importers.recording import Recording

_LARGEST_NUMBER = 1 << 20
_MEMORY_KEYS = ("totalGlobalMem", "total_memory")
_UNIT_KEYS = ("numSms", "multi_processor_count", "multiProcessorCount")
_TYPES = {
    "process_idx": pa.int32(), "device_idx": pa.int32(), "name": pa.string(), "memory_bytes": pa.int64(),
    "compute_unit_count": pa.int64(),
}  # fmt: skip


def stage_devices(recording: Recording, properties: Any, process: int = 0) -> None:
    """Stages a row for each object with a number and a name; anything else is left out.

    Args:
        recording: Receives the rows.
        properties: What the trace has, as `deviceProperties` of torch.profiler: objects with `id`, `name`,
            `totalGlobalMem`, `numSms`.
        process: Index of the process whose devices they are.
    """
    found = properties if isinstance(properties, list) else []
    rows = [row | {"process_idx": process} for row in map(_row, found) if row is not None]
    if rows:
        columns = {name: pa.array([row[name] for row in rows], kind) for name, kind in _TYPES.items()}
        recording.append("Device", columns)


def _row(device: Any) -> dict[str, Any] | None:
    number = whole_number(device.get("id"), _LARGEST_NUMBER) if isinstance(device, dict) else None
    if number is None or not isinstance(device.get("name"), str):
        return None
    memory, units = (
        next((whole_number(device[key], 1 << 62) for key in keys if key in device), None)
        for keys in (_MEMORY_KEYS, _UNIT_KEYS)
    )
    return {
        "device_idx": number, "name": device["name"], "memory_bytes": memory, "compute_unit_count": units,
    }  # fmt: skip
