"""`torch.neuron`: what PyTorch, transformers, accelerate and users ask of a device module."""

from __future__ import annotations

import sys
from typing import NoReturn

import torch

from neuron_tools.device.api import amp, graphs
from neuron_tools.device.api.absent import ABSENT
from neuron_tools.device.api.compile_metrics import get_dynamo_metrics, reset_dynamo_metrics
from neuron_tools.device.api.devices import (
    DeviceProperties,
    _DeviceGuard,
    _exchange_device,
    _lazy_init,
    _maybe_exchange_device,
    can_device_access_peer,
    configure_properties,
    current_device,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_initialized,
    set_device,
    synchronize,
)
from neuron_tools.device.api.graphs import (
    NeuronGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
from neuron_tools.device.api.memory import (
    OutOfMemoryError,
    device_memory_used,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from neuron_tools.device.api.memory_history import memory_snapshot
from neuron_tools.device.api.precision import (
    get_amp_supported_dtype,
    is_bf16_supported,
    is_tf32_supported,
)
from neuron_tools.device.api.random import (
    _is_in_bad_fork,
    default_generators,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from neuron_tools.device.api.streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)

AcceleratorError = torch.AcceleratorError
# Activation checkpointing restores the device's random state only where the device says it is initialised.
_initialized = True


def __getattr__(name: str) -> NoReturn:
    """Raises what Python raises for a name that is not there, with the reason where `torch.cuda` has it."""
    reason = f": {ABSENT[name]}" if name in ABSENT else "."
    raise AttributeError(f"torch.neuron has no {name}{reason}", name=name, obj=sys.modules[__name__])


__all__ = [
    "AcceleratorError",
    "DeviceProperties",
    "Event",
    "NeuronGraph",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "amp",
    "can_device_access_peer",
    "configure_properties",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "empty_cache",
    "get_allocator_backend",
    "get_amp_supported_dtype",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_dynamo_metrics",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "graph_pool_handle",
    "graphs",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_dynamo_metrics",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]
_PRIVATE = (_DeviceGuard, _exchange_device, _is_in_bad_fork, _lazy_init, _maybe_exchange_device)
