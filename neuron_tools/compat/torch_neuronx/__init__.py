"""`torch_neuronx` where AWS's package is absent: ahead-of-time compilation for the simulated device."""

from __future__ import annotations

import importlib
from typing import Any

import torch

from neuron_tools.frontends.nki.torch_custom_op import nki_op
from neuron_tools.frontends.nki.wrapper import wrap_nki
from neuron_tools.frontends.torch_trace.weights import replace_weights

from . import contexts, experimental, runtime_classes, testing
from .inference import (
    BucketModelConfig,
    DataParallel,
    analyze,
    async_load,
    bucket_model_trace,
    dynamic_batch,
    lazy_load,
    move_trace_to_device,
)
from .nki_jit import nki_jit
from .operator_tracking import clear_op_tracking, get_executed_ops, get_fallback_ops
from .tracing import PartitionerConfig, trace

__version__ = "2.9.0.2.11"
__all__ = [
    "BucketModelConfig", "DataParallel", "PartitionerConfig", "analyze", "async_load", "bucket_model_trace",
    "clear_op_tracking", "contexts", "dynamic_batch", "experimental", "get_executed_ops", "get_fallback_ops",
    "lazy_load", "move_trace_to_device", "nki_jit", "nki_op", "replace_weights", "testing", "trace",
    "wrap_nki",
]  # fmt: skip


runtime_classes.register()

_NAMED_OTHERWISE = {"is_neuron_runtime_initialized": "is_initialized", "_lazy_init": "init"}
"""Functions of `torch.neuron`, which is there once PyTorch has loaded the device, by TorchNeuron's names."""


def __getattr__(name: str) -> Any:
    """`nki` is that package, `neuron` is `torch.neuron`, and `synchronize`, `Stream` and more are its."""
    if name == "nki":
        return importlib.import_module("nki")
    if name == "neuron":
        return torch.neuron
    if name in _NAMED_OTHERWISE:
        return getattr(torch.neuron, _NAMED_OTHERWISE[name])
    if name in getattr(torch.neuron, "__all__", ()):
        return getattr(torch.neuron, name)
    known = ", ".join(__all__)
    raise AttributeError(f"torch_neuronx has no {name!r} here; it has {known}, nki and what torch.neuron has")
