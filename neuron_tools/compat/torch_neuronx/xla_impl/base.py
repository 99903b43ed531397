"""`torch_neuronx.xla_impl.base`: decorators of functions that AWS's compiler sees as one operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neuron_tools.compat.torch_neuronx.xla_impl.scribe import built

__all__ = ["xla_call", "xla_hlo_call"]


def xla_call(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself: its operations are recorded one by one."""
    return function


def xla_hlo_call(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors that does what a function builds by HLO's operations (`scribe`)."""
    return built(function)
