"""`torch_neuronx.xla_impl.base`: decorators of functions that AWS's compiler sees as one operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neuron_tools.compat.absent import Absent

__all__ = ["xla_call", "xla_hlo_call"]


def xla_call(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself: its operations are recorded one by one."""
    return function


def xla_hlo_call(function: Callable[..., Any]) -> Absent:
    """What says, when it is called, that a function which builds HLO by AWS's own builder is not run."""
    return Absent(
        f"What {function.__qualname__} builds",
        "AWS's builder of HLO is closed; write it in PyTorch's operators.",
    )
