"""Kernel calls on PyTorch tensors: run at once, or as one operator where PyTorch is being traced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from neuron_tools.frontends.nki.torch_device import recording_on, run_timed
from neuron_tools.frontends.nki.torch_forms import forms_of
from neuron_tools.frontends.nki.torch_operator import call_operator
from neuron_tools.nki.call import CALLS, KernelCall
from neuron_tools.nki.kernel import Kernel
from neuron_tools.nki.tracer import Recording


def execute(kernel: Kernel, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """What a kernel returns for PyTorch tensors; NotImplemented where there is nothing to do for PyTorch."""
    call, tensors = KernelCall.of(kernel, arguments, keywords, _is_tensor)
    if not tensors:
        return NotImplemented
    if _is_traced(tensors):
        return call_operator(call, tensors)
    if recording_on(tensors) is not None:
        return _run_recorded(CALLS[CALLS.number(call)], tensors)
    if any(tensor.device.type == "neuron" for tensor in tensors):
        return kernel.run(*arguments, recording=Recording.NOTHING, **keywords).outputs
    return NotImplemented


def _run_recorded(call: KernelCall, tensors: list[Any]) -> Any:
    """Values on the tensors' own memory, and an execution on their device."""
    from neuron_tools.device import native

    arguments, keywords = call.filled(tensors)
    with native.paused_clock():
        form = call.form(forms_of(tensors))
        if form.is_data_dependent:
            form = call.form_of(call.kernel.run(*arguments, **keywords))

    def compute() -> Any:
        if form.is_data_dependent:
            return form.run.outputs
        return call.kernel.run(*arguments, recording=Recording.NOTHING, **keywords).outputs

    return run_timed(compute, call, form, tensors)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _is_traced(tensors: list[Any]) -> bool:
    """Whether operations on the tensors are traced: by a dispatch mode, by wrapping, or on `xla`."""
    if torch._C._len_torch_dispatch_stack():
        return True
    return any(
        isinstance(tensor, FakeTensor) or torch._is_functional_tensor(tensor) or tensor.device.type == "xla"
        for tensor in tensors
    )
