"""What a loop's function is given and what it carries on, and what it must not do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from neuron_tools.device import native
from neuron_tools.frontends.torch_xla.body import Body
from neuron_tools.frontends.torch_xla.errors import XlaError
from neuron_tools.frontends.torch_xla.nest import Nest, emptied
from neuron_tools.frontends.torch_xla.tensor import LazyValue, XlaTensor
from neuron_tools.frozen import frozen

Tensors = Sequence[torch.Tensor]


def beginning(tensor: torch.Tensor, has_gradient: bool = False, row: int | None = None) -> XlaTensor:
    """A tensor from outside a step, like another, or like a row of it."""
    assert isinstance(tensor, XlaTensor)
    with native.unrecorded():
        inner = tensor.lazy.inner.detach()
        made = XlaTensor(LazyValue((inner if row is None else inner[row]).clone()), tensor.dtype)
    made.requires_grad_(has_gradient)
    return made


class _Same(torch.autograd.Function):
    """The same value, in a tensor of its own."""

    @staticmethod
    def forward(ctx: Any, tensor: XlaTensor) -> XlaTensor:
        return XlaTensor(tensor.lazy, tensor.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


def writable(tensor: torch.Tensor) -> torch.Tensor:
    """The value for a function that may write to it in place, which a leaf with a gradient refuses."""
    same: torch.Tensor = _Same.apply(tensor) if tensor.requires_grad else tensor
    return same


@frozen
class LoopFunction:
    """What the function of a loop must keep to.

    Attributes:
        loop: Who calls it, as the user knows that: "scan".
    """

    loop: str

    def check_unwritten(self, body: Body, carried: int) -> None:
        """See that only what is carried was written in place.

        Raises:
            ValueError: Another tensor was.
        """
        if any(at >= carried for at in body.written()):
            raise ValueError(
                f"The function of {self.loop} writes in place to a tensor that it was not given to carry, as "
                "a batch norm in training writes its running statistics. Such a write would be lost: let the "
                "function carry the tensor, or write to a clone of it."
            )

    def carried_on(self, start: Nest, before: Tensors, after: Any) -> Tensors:
        """The tensors that a step carries on.

        Raises:
            ValueError: They are others than those that it began with.
        """
        nest, tensors = emptied(after)
        if (nest.structure, nest.places) != (start.structure, start.places):
            raise ValueError(
                f"The function of {self.loop} must carry on the nest of tensors that it was given."
            )
        for given, taken in zip(tensors, before):
            if (given.shape, given.dtype) != (taken.shape, taken.dtype):
                raise ValueError(
                    f"The function of {self.loop} was given a tensor of {list(taken.shape)} ({taken.dtype}) "
                    f"to carry and carries on one of {list(given.shape)} ({given.dtype}): both must be alike."
                )
        return tensors

    def number(self, body: Body, tensor: torch.Tensor) -> int:
        """The number of a tensor that a step returns.

        Raises:
            XlaError: It is on another device.
        """
        if not isinstance(tensor, XlaTensor):
            raise XlaError(
                f"The function of {self.loop} returns a tensor on {tensor.device}: move it to xla."
            )
        return body.number_of(tensor.lazy, tensor)

    def check_devices(self, tensors: Tensors) -> None:
        """See that tensors are on the device, whole on each core.

        Raises:
            XlaError: One is not.
        """
        for each in tensors:
            if not isinstance(each, XlaTensor):
                raise XlaError(
                    f"{self.loop} got a tensor on {each.device} beside one on xla: move it to xla first."
                )
            if each.lazy.by_core is not None:
                raise XlaError(f"{self.loop} got each core's own part: call disable_manual_sharding first.")
