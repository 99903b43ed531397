"""Device memory: how much, the most so far, and who holds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from neuron_tools.device import native
from neuron_tools.device.api.devices import DeviceLike, device_index, get_device_properties
from neuron_tools.device.api.memory_history import (
    _allocation_traceback as _allocation_traceback,
    _dump_snapshot as _dump_snapshot,
    _record_memory_history as _record_memory_history,
    _save_memory_usage as _save_memory_usage,
    _save_segment_usage as _save_segment_usage,
    _snapshot as _snapshot,
    memory_snapshot as memory_snapshot,
)

OutOfMemoryError = torch.OutOfMemoryError
_core = native.core()
_MOST_HOLDERS = 20
_KINDS = ("current", "peak", "allocated", "freed")
_POOLS = {"all": "", "small_pool": "small_", "large_pool": "large_"}
_COUNTERS = {
    "allocated_bytes reserved_bytes active_bytes requested_bytes": (
        "allocated_bytes", "peak_bytes", "total_allocated_bytes", "total_freed_bytes",
    ),
    "allocation active segment": ("live_allocations", "peak_allocations", "allocation_count", "free_count"),
    "inactive_split inactive_split_bytes": ("", "", "", ""),
}  # fmt: skip
"""Names of PyTorch's -> the device's counters of `_KINDS`; none stands for 0."""
_NEVER = (
    "max_split_size", "num_alloc_retries", "num_oom_rejections", "num_sync_all_streams",
    *(f"oversize_{what}.{kind}" for what in ("allocations", "segments") for kind in _KINDS),
)  # fmt: skip
_fraction = 1.0
_whole: tuple[int, int] | None = None
"""The limit and the device's memory in bytes before a fraction of it was set; None before that."""


def _statistics(device: DeviceLike) -> dict[str, int]:
    statistics: dict[str, int] = _core.memory_statistics(device_index(device))
    return statistics


def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes that tensors hold now."""
    return _statistics(device)["allocated_bytes"]


def max_memory_allocated(device: DeviceLike = None) -> int:
    """The most bytes held at once since the start or `reset_peak_memory_stats`."""
    return _statistics(device)["peak_bytes"]


def memory_reserved(device: DeviceLike = None) -> int:
    """Bytes taken from the device; the same as allocated, because nothing is cached."""
    return memory_allocated(device)


def max_memory_reserved(device: DeviceLike = None) -> int:
    """The most bytes taken at once."""
    return max_memory_allocated(device)


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def memory_stats(device: DeviceLike = None) -> dict[str, Any]:
    """The counters under the names of `torch.cuda.memory_stats`, and under those of TorchNeuron.

    Nothing is cached: what is reserved, active and asked for is what is allocated, each allocation is a
    segment of its own, and none is ever split.

    Returns:
        Numbers as "allocated_bytes.all.peak", and as TorchNeuron has them: `allocated_bytes`,
        `reserved_bytes` and `active_bytes`, each with `current`, `peak`, `allocated` and `freed` bytes,
        `allocation_requests` and `num_tensor_frees`.
    """
    counters = _statistics(device)
    return dict(sorted({**_flat(counters), **_grouped(counters)}.items()))


def _flat(counters: Mapping[str, int]) -> dict[str, int]:
    stats = {name: value for pool in _POOLS for name, value in _of_pool(counters, pool)}
    stats |= dict.fromkeys(_NEVER, 0)
    stats["num_ooms"] = counters["out_of_memory_count"]
    stats["num_device_alloc"] = counters["allocation_count"]
    stats["num_device_free"] = counters["free_count"]
    return stats


def _grouped(counters: Mapping[str, int]) -> dict[str, Any]:
    sources = _COUNTERS["allocated_bytes reserved_bytes active_bytes requested_bytes"]
    bytes_of = {kind: counters[source] for kind, source in zip(_KINDS, sources, strict=True)}
    return {
        **{name: dict(bytes_of) for name in ("allocated_bytes", "reserved_bytes", "active_bytes")},
        "allocation_requests": counters["allocation_count"],
        "num_tensor_frees": counters["free_count"],
    }


def _of_pool(counters: Mapping[str, int], pool: str) -> Iterator[tuple[str, int]]:
    prefix = _POOLS[pool]
    for names, sources in _COUNTERS.items():
        for name in names.split():
            for kind, source in zip(_KINDS, sources, strict=True):
                yield f"{name}.{pool}.{kind}", counters[prefix + source] if source else 0


def memory_stats_as_nested_dict(device: DeviceLike = None) -> dict[str, Any]:
    """The counters of `memory_stats`, "a.b.c" as a dictionary in a dictionary in a dictionary."""
    nested: dict[str, Any] = {}
    for name, value in memory_stats(device).items():
        if isinstance(value, dict):  # TorchNeuron's groups
            continue
        *groups, last = name.split(".")
        place = nested
        for group in groups:
            place = place.setdefault(group, {})
        place[last] = value
    return nested


def memory_summary(device: DeviceLike = None, abbreviated: bool = False) -> str:
    """Who holds the device's memory, the largest first, as text."""
    index = device_index(device)
    counters = _statistics(index)
    head = (
        f"Neuron Memory Summary, Device {index}\n"
        f"neuron:{index}: {counters['allocated_bytes']:,} bytes in {counters['live_allocations']:,} "
        f"allocations, at most {counters['peak_bytes']:,} bytes\n"
    )
    return head if abbreviated else head + str(_core.memory_holders(index, _MOST_HOLDERS))


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """(free, total) bytes of the device."""
    total = get_device_properties(device).total_memory
    return max(0, total - memory_allocated(device)), total


def device_memory_used(device: DeviceLike = None) -> int:
    """Bytes of the device that are not free."""
    free, total = mem_get_info(device)
    return total - free


def set_per_process_memory_fraction(fraction: float, device: DeviceLike = None) -> None:
    """Lets this process use a part of each NeuronCore's memory; more raises `OutOfMemoryError`.

    Args:
        fraction: From 0 to 1.
        device: Whose memory is meant; the limit holds for all devices of the process.

    Raises:
        ValueError: The fraction is below 0 or above 1.
    """
    global _fraction, _whole
    if not 0 <= fraction <= 1:
        raise ValueError(f"The fraction of memory is {fraction}: give one from 0 to 1.")
    _whole = _whole or (native.memory_limit(), get_device_properties(device).total_memory)
    _fraction = fraction
    limit, total = _whole
    native.set_memory_limit(limit if fraction == 1 else max(1, int(fraction * total)))  # 0 would be no limit


def get_per_process_memory_fraction(device: DeviceLike = None) -> float:
    """The part of the memory that `set_per_process_memory_fraction` left; 1 before."""
    device_index(device)
    return _fraction


def get_allocator_backend() -> str:
    """Always "native"."""
    return "native"


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Starts the peak counters anew from what is held now."""
    _core.reset_peak_memory(device_index(device))


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    """Sets the counters of allocations, frees and failures to 0."""
    _core.reset_accumulated_memory(device_index(device))


def empty_cache() -> None:
    """Does nothing: freed memory goes back at once."""
