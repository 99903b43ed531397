"""Lets `torch.compile()` without a back end use ours for graphs on `neuron`, and PyTorch's own for others."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

_REGISTRY = "torch._dynamo.backends.registry"


def install() -> Callable[[], None]:
    """Make it the default back end, now or at the first `torch.compile`; returns a function that undoes it.

    Dynamo is not imported for it: that would cost every program a second.
    """
    original = torch.compile

    @functools.wraps(original)
    def compile(*args: Any, **kwargs: Any) -> Any:
        _set_default()
        return original(*args, **kwargs)

    if _REGISTRY in sys.modules:
        _set_default()
    torch.compile = compile

    def uninstall() -> None:
        torch.compile = original
        if _REGISTRY in sys.modules and torch.compiler.get_default_backend() is choose_backend:
            torch.compiler.set_default_backend(None)

    return uninstall


def _set_default() -> None:
    """Only where the user has not chosen another default. Dynamo shall not look into this package."""
    from torch._dynamo import trace_rules

    from neuron_tools.frontends.nki import dynamo

    trace_rules.add("neuron_tools")
    dynamo.install()
    if torch.compiler.get_default_backend() == "inductor":
        torch.compiler.set_default_backend(choose_backend)


def choose_backend(gm: Any, example_inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """Compile with ours where a tensor of the graph is on the device, else with inductor."""
    from torch._dynamo.backends.registry import lookup_backend

    from neuron_tools.frontends.torch_compile.backend import neuron_backend

    if any(isinstance(value, torch.Tensor) and value.device.type == "neuron" for value in example_inputs):
        return neuron_backend(gm, example_inputs, **options)
    compiled: Callable[..., Any] = lookup_backend("inductor")(gm, example_inputs, **options)
    return compiled
