"""The PyTorch operator behind every kernel call that PyTorch traces.

`neuron_tools::nki_kernel(call, inputs)` is functional: it gives what the kernel returns, then the new values
of the inputs that it writes. `call` is the number of a `KernelCall`: all that is not a tensor stays outside
the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from neuron_tools.arrays import Array
from neuron_tools.frontends.nki.torch_device import run_timed
from neuron_tools.frontends.nki.torch_forms import NAME, NAMESPACE, forms_of
from neuron_tools.frontends.nki.torch_ranks import torch_ranks
from neuron_tools.nki.call import CALLS, CallForm, KernelCall
from neuron_tools.nki.ranks import register_communicator
from neuron_tools.nki.torch_tensors import TorchAdapter, host_view, torch_type

register_communicator(torch_ranks)
_ADAPTER = TorchAdapter()


def call_operator(call: KernelCall, tensors: Sequence[Any]) -> Any:
    """Run a call as one operator, for whoever traces PyTorch; returns what the kernel returns."""
    form = call.form(forms_of(tensors))
    made = kernel_operator()(CALLS.number(call), list(tensors))
    count = len(form.results)
    for number, value in zip(form.written, made[count:]):
        tensors[number].copy_(value)
    return form.returned(made[:count])


@lru_cache(maxsize=1)
def kernel_operator() -> Any:
    """The operator, defined on first use."""
    torch.library.define(f"{NAMESPACE}::{NAME}", "(int call, Tensor[] inputs) -> Tensor[]")
    torch.library.impl(f"{NAMESPACE}::{NAME}", "CompositeExplicitAutograd", _compute)
    torch.library.register_fake(f"{NAMESPACE}::{NAME}", _fake)
    from neuron_tools.frontends.nki.torch_graphs import lower_kernels

    lower_kernels()
    return torch.ops.neuron_tools.nki_kernel.default


def _fake(call: int, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    form = CALLS[call].form(forms_of(inputs))
    device = inputs[0].device if inputs else torch.device("cpu")
    made = [torch.empty(shape, dtype=torch_type(dtype), device=device) for shape, dtype in form.results]
    return made + [torch.empty_like(inputs[number]) for number in form.written]


def _compute(call: int, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    found = CALLS[call]
    form = found.form(forms_of(inputs))
    results = run_timed(lambda: _values(found, form, inputs), found, form, inputs)
    types = [torch_type(dtype) for _, dtype in form.results] + [inputs[n].dtype for n in form.written]
    device = inputs[0].device if inputs else torch.device("cpu")
    tensors = [torch.empty(array.shape, dtype=dtype, device=device) for array, dtype in zip(results, types)]
    for tensor, array in zip(tensors, results):
        host_view(tensor)[...] = array
    return tensors


def _values(call: KernelCall, form: CallForm, inputs: list[torch.Tensor]) -> list[Array]:
    """What the kernel returns and the new values of what it writes; the inputs stay as they are."""
    arrays = [_ADAPTER.array(tensor) for tensor in inputs]
    for number in form.written:
        arrays[number] = np.array(arrays[number])
    return [*call.compute(arrays), *(arrays[number] for number in form.written)]
