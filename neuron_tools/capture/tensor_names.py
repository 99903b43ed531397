"""Tells a capture's log whose memory is whose: names of parameters and buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from neuron_tools.device import native

if TYPE_CHECKING:
    import torch


class TensorNames:
    """Names each piece of device memory once.

    Args:
        define: Takes the memory's number, the tensor's path and its category.
    """

    def __init__(self, define: Callable[[int, str, str], None]) -> None:
        self._define = define
        self._named: set[int] = set()

    def tell(self, path: str, module: torch.nn.Module) -> None:
        """Name what a module and those below it hold; no host time passes meanwhile.

        Args:
            path: Of the module.
        """
        with native.paused_clock():
            for name, parameter in module.named_parameters():
                self._name(f"{path}.{name}", parameter, "parameter")
            for name, buffer in module.named_buffers():
                self._name(f"{path}.{name}", buffer, "buffer")

    def _name(self, name: str, tensor: torch.Tensor, category: str) -> None:
        local = getattr(tensor, "_local_tensor", tensor)  # a DTensor's own part
        number = native.buffer_number(local)
        if number and number not in self._named:
            self._named.add(number)
            self._define(number, name, category)
