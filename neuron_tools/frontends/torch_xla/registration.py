"""Gives stock PyTorch the device `xla`."""

from __future__ import annotations

from functools import partial
from typing import Any

from neuron_tools.frontends.torch_xla import attention, device_module, dynamo
from neuron_tools.frontends.torch_xla.dispatch import dispatch, fallback
from neuron_tools.frontends.torch_xla.tensor import XlaTensor

_CALLED_BELOW_PYTHON = ("_copy_from", "_copy_from_and_resize")
"""What `torch.tensor` calls while it hides our tensors' class; PyTorch finds no fallback then."""
_registered: list[Any] = []


def register() -> None:
    """Register the device's kernels and guard; does nothing the second time.

    Raises:
        DeviceBuildError: The `neuron` device, which is below, cannot be built.
    """
    import torch

    from neuron_tools.device import autoload, native

    if _registered:
        return
    autoload.register()
    native.register_xla_device()
    torch._register_device_module("xla", device_module)
    library = torch.library.Library("_", "IMPL")
    library.fallback(fallback, "XLA")
    named = torch.library.Library("aten", "IMPL")
    for name in _CALLED_BELOW_PYTHON:
        named.impl(name, partial(fallback, getattr(torch.ops.aten, name).default), "XLA")
    named.impl("scaled_dot_product_attention", attention.scaled_dot_product_attention, "AutogradXLA")
    XlaTensor.dispatcher = staticmethod(dispatch)
    _registered.extend([library, named])
    dynamo.install()
