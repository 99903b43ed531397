"""What `torch.cuda` has and `torch.neuron` has not, each with the reason or with what serves instead."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_OLD_TYPES = "PyTorch's typed tensors and storages are deprecated: pass dtype= and device= instead."
_CUDA_LIBRARY = "It gives access to a library of CUDA, which a NeuronCore does not have."
_NO_CACHE = "Nothing is cached: freed memory goes back to the device at once."
_PINNED = "Pinned memory is the host's own here; nothing is kept when it is freed."
_MONITOR = "neuron-monitor and neuron-top show it, for all processes of the machine."

_FAMILIES = {
    _OLD_TYPES: (
        "BFloat16Storage BFloat16Tensor BoolStorage BoolTensor ByteStorage ByteTensor CharStorage "
        "CharTensor ComplexDoubleStorage ComplexFloatStorage DoubleStorage DoubleTensor FloatStorage "
        "FloatTensor HalfStorage HalfTensor IntStorage IntTensor LongStorage LongTensor ShortStorage "
        "ShortTensor"
    ),
    _CUDA_LIBRARY: (
        "CudaError check_error cudaStatus cudart current_blas_handle current_solver_handle gds "
        "get_gencode_flags GreenContext green_contexts has_half has_magma jiterator nccl nvtx profiler "
        "sparse tunable"
    ),
    _NO_CACHE: (
        "caching_allocator_alloc caching_allocator_delete caching_allocator_disabled "
        "caching_allocator_enable change_current_allocator CUDAPluggableAllocator ipc_collect MemPool "
        "use_mem_pool"
    ),
    _PINNED: (
        "host_memory_stats host_memory_stats_as_nested_dict reset_accumulated_host_memory_stats "
        "reset_peak_host_memory_stats"
    ),
    _MONITOR: "clock_rate list_gpu_processes memory_usage power_draw temperature utilization",
}
_ALONE = {
    "CUDAGraph": "Its name is torch.neuron.NeuronGraph, or torch.accelerator.Graph on any device.",
    "DeferredCudaCallError": "Nothing is deferred: the device is ready when `import torch` ends.",
    "ExternalStream": "No library outside PyTorch makes streams of a NeuronCore.",
    "get_stream_from_external": "No library outside PyTorch makes streams of a NeuronCore.",
    "get_sync_debug_mode": "A profile lists every synchronization with its line: neuron-profile capture.",
    "set_sync_debug_mode": "A profile lists every synchronization with its line: neuron-profile capture.",
}

ABSENT: Mapping[str, str] = MappingProxyType(
    {name: reason for reason, names in _FAMILIES.items() for name in names.split()} | _ALONE
)
"""Name -> a sentence."""
