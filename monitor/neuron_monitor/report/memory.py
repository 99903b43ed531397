"""Memory of a process in the report's five device and four host categories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuron_monitor.api.layout import MEMORY_SLICE
from neuron_monitor.api.readings import Model, ProcessReading
from neuron_monitor.report.spelling import Keys

# The driver has more categories than the report: the others are added to the one that they are part of,
# so that the parts still sum to the whole.
DEVICE_CATEGORIES: dict[str, tuple[str, ...]] = {
    "constants": ("constants",),
    "model_code": ("model_code",),
    "model_shared_scratchpad": ("model_shared_scratchpad", "nonshared_scratchpad"),
    "runtime_memory": (
        "runtime_memory",
        "driver_memory",
        "collectives",
        "notifications",
        "dma_rings",
        "uncategorized",
    ),
    "tensors": ("tensors",),
}
HOST_CATEGORIES: dict[str, tuple[str, ...]] = {
    "application_memory": ("application_memory", "driver_memory", "notifications", "uncategorized"),
    "constants": ("constants",),
    "dma_buffers": ("dma_buffers", "dma_rings"),
    "tensors": ("tensors",),
}
MODELS_REPORTED = 32
"""Of all processes together: public clients read lines of 64 KiB at most, and stop at a longer one."""
_NO_HOST_MEMORY = {"application_memory": 0, "constants": 0, "dma_buffers": 0, "tensors": 0}
_NO_MODEL_MEMORY = {"constants": 0, "model_code": 0, "runtime_memory": 0, "tensors": 0}


def device_categories(memory: Mapping[str, int]) -> dict[str, int]:
    """Bytes of one core by the report's categories."""
    return {name: sum(memory.get(part, 0) for part in parts) for name, parts in DEVICE_CATEGORIES.items()}


def host_categories(memory: Mapping[str, int]) -> dict[str, int]:
    """Bytes of the host by the report's categories."""
    return {name: sum(memory.get(part, 0) for part in parts) for name, parts in HOST_CATEGORIES.items()}


def memory_token(process: ProcessReading) -> Any:
    """What `memory_used` is made of: as long as this is equal, so is that."""
    held = [core.counts[MEMORY_SLICE] for core in process.cores.values()]
    return process.host_memory, held, process.models_told


def logical_memory(process: ProcessReading) -> dict[int, dict[str, int]]:
    """Bytes by logical core and report category."""
    found: dict[int, dict[str, int]] = {}
    for core_id, core in process.cores.items():
        memory = device_categories(core.device_memory)
        known = found.setdefault(core_id // process.logical_core_size, dict.fromkeys(memory, 0))
        for name, held in memory.items():
            known[name] += held
    return found


def memory_used(process: ProcessReading, keys: Keys, most_models: int = MODELS_REPORTED) -> dict[str, Any]:
    """The group `memory_used`, without its period and error."""
    cores = logical_memory(process)
    host = host_categories(process.host_memory)
    device_bytes = sum(sum(memory.values()) for memory in cores.values())
    return {
        "neuron_runtime_used_bytes": {
            "host": sum(host.values()),
            **dict.fromkeys(keys.device_memory, device_bytes),
            "usage_breakdown": {
                "host": host,
                "neuroncore_memory_usage": {str(core): cores[core] for core in sorted(cores)},
            },
        },
        "loaded_models": [_loaded_model(model, process, keys) for model in process.models[:most_models]],
    }


def _loaded_model(model: Model, process: ProcessReading, keys: Keys) -> dict[str, Any]:
    """A model; what it holds by itself is not told by any driver's tree, so its own bytes are 0."""
    core = process.cores.get(model.core)
    used: dict[str, Any] = {
        "host": 0,
        **dict.fromkeys(keys.device_memory, 0),
        "usage_breakdown": {
            "host": _NO_HOST_MEMORY,
            **dict.fromkeys(keys.device_memory, _NO_MODEL_MEMORY),
        },
    }
    return {
        "name": model.name,
        "uuid": model.uuid,
        "model_id": model.model_id,
        "is_running": model.is_running,
        "subgraphs": {
            "sg_00": {
                "memory_used_bytes": used,
                "neuroncore_index": model.core // process.logical_core_size,
                "neuron_device_index": core.device if core else 0,
            }
        },
    }
