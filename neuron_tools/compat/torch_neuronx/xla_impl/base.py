"""`torch_neuronx.xla_impl.base`: the decorator of functions that AWS's compiler sees as one operation."""

from collections.abc import Callable
from typing import Any

__all__ = ["xla_call"]


def xla_call(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself: its operations are recorded one by one."""
    return function
