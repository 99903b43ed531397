"""Snapshots of device memory and the history of its allocations, as PyTorch's visualiser opens them."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from torch.cuda import _memory_viz

from neuron_tools.device import native
from neuron_tools.device.api.devices import DeviceLike

Frames: TypeAlias = "list[dict[str, Any]]"
Snapshot: TypeAlias = "dict[str, Any]"
_core = native.core()
_SMALL_BYTES = 1 << 20
_MOST_EVENTS = 2**63 - 1
_NO_POOL = (0, 0)
_skipped: frozenset[str] = frozenset()
_ACTIONS = {
    "allocate": ("segment_alloc", "alloc"),
    "free": ("free_requested", "free_completed", "segment_free"),
    "out_of_memory": ("oom",),
    "snapshot": ("snapshot",),
}
"""What the device does -> what PyTorch calls it: as nothing is cached, each allocation is a segment."""


def _record_memory_history(
    enabled: Literal["state", "all"] | bool | None = "all",
    context: Literal["state", "alloc", "all"] | None = "all",
    stacks: str = "all",
    max_entries: int = sys.maxsize,
    device: DeviceLike = None,
    clear_history: bool = False,
    compile_context: bool = False,
    global_record_annotations: bool = False,
    skip_actions: Sequence[str] | None = None,
) -> None:
    """Keep the Python stacks of what is allocated, and each allocation and free, as `torch.cuda.memory` does.

    Args:
        enabled: None ends it, "state" keeps stacks of what is still allocated, "all" each event too.
        context: Which stacks are kept: none, of what is live, in events of allocations, in those of frees.
        stacks: Has no effect: stacks are Python's, the C++ frames below them are the device's own.
        max_entries: Events kept of each device; the oldest go.
        device: Has no effect: all devices of the process are recorded.
        clear_history: Forget the events that were kept.
        compile_context: Has no effect.
        global_record_annotations: Has no effect.
        skip_actions: Names of events that snapshots leave out.

    Raises:
        ValueError: `enabled` or `context` is none of these.
    """
    global _skipped
    if enabled not in (None, False, True, "state", "all"):
        raise ValueError(f'enabled is {enabled!r}: give None, "state" or "all".')
    if context not in (None, "state", "alloc", "all"):
        raise ValueError(f'context is {context!r}: give None, "state", "alloc" or "all".')
    _skipped = frozenset(skip_actions or ())
    on = enabled not in (None, False)
    _core.set_memory_history(
        enabled in ("all", True),
        on and context is not None,
        on and context in ("alloc", "all"),
        on and context == "all",
        min(max_entries, _MOST_EVENTS),
        clear_history,
    )


def _snapshot(device: DeviceLike = None, augment_with_fx_traces: bool = False) -> Snapshot:
    """What is allocated and what happened, as `torch.cuda.memory._snapshot` tells it.

    Args:
        device: Has no effect: all devices are told, each segment with its own.
        augment_with_fx_traces: Has no effect.
    """
    live, events, stacks = _core.memory_record()
    frames = [
        [{"name": name, "filename": file, "line": line} for name, file, line in stack] for stack in stacks
    ]
    return {
        "segments": [_segment(allocation, frames) for allocation in live],
        "device_traces": [_trace(of_device, frames) for of_device in events],
        "allocator_settings": {},
        "external_annotations": [],
    }


def memory_snapshot(mempool_id: tuple[int, int] | None = None) -> list[dict[str, Any]]:
    """The segments of device memory: one for each allocation, as nothing is cached.

    Args:
        mempool_id: Of a pool; there are none, so any id but that of no pool has no segments.
    """
    if mempool_id not in (None, _NO_POOL):
        return []
    segments: list[dict[str, Any]] = _snapshot()["segments"]
    return segments


def _dump_snapshot(filename: str = "dump_snapshot.pickle", augment_with_fx_traces: bool = False) -> None:
    """Write a snapshot to a file that https://pytorch.org/memory_viz opens."""
    Path(filename).write_bytes(pickle.dumps(_snapshot()))


def _save_segment_usage(filename: str = "output.svg", snapshot: Snapshot | None = None) -> None:
    """Write a flame graph of segments by what asked for them."""

    Path(filename).write_text(_memory_viz.segments(snapshot or _snapshot()))


def _save_memory_usage(filename: str = "output.svg", snapshot: Snapshot | None = None) -> None:
    """Write a flame graph of memory by what asked for it."""

    Path(filename).write_text(_memory_viz.memory(snapshot or _snapshot()))


def _allocation_traceback(data_ptr: int) -> Frames | None:
    """The stack that allocated what begins at an address; None where nothing does or no stack was kept."""
    for segment in memory_snapshot():
        if segment["address"] == data_ptr:
            frames: Frames = segment["frames"]
            return frames or None
    return None


def _segment(allocation: tuple[int, int, int, int], frames: Sequence[Frames]) -> dict[str, Any]:
    device, address, size, stack = allocation
    asked = frames[stack] if stack >= 0 else []
    block = {
        "address": address, "size": size, "requested_size": size, "state": "active_allocated",
        "frames": asked,
    }  # fmt: skip
    return {
        "device": device, "address": address, "total_size": size, "allocated_size": size,
        "active_size": size, "requested_size": size, "stream": 0, "segment_pool_id": _NO_POOL,
        "segment_type": "small" if size <= _SMALL_BYTES else "large", "is_expandable": False,
        "frames": asked, "blocks": [block],
    }  # fmt: skip


def _trace(
    events: Sequence[tuple[str, int, int, int, int]], frames: Sequence[Frames]
) -> list[dict[str, Any]]:
    return [
        _entry(name, address, size, time_us, frames[stack] if stack >= 0 else [])
        for action, address, size, time_us, stack in events
        for name in _ACTIONS[action]
        if name not in _skipped
    ]


def _entry(action: str, address: int, size: int, time_us: int, frames: Frames) -> dict[str, Any]:
    place = "device_free" if action == "oom" else "addr"
    return {
        "action": action, place: address, "size": size, "stream": 0, "time_us": time_us, "frames": frames,
        "pool_id": _NO_POOL, "compile_context": "", "user_metadata": "",
    }  # fmt: skip
