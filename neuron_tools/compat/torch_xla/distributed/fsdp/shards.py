"""What a rank holds of a parameter, and how the whole comes and its gradient goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from neuron_tools.frontends.torch_xla.tensor import LazyValue, XlaTensor

from ...core import xla_model as xm  # noqa: TID252  # found as torch_xla


@dataclass(frozen=True)
class Sharing:
    """How parameters are shared out.

    Attributes:
        groups: Ranks that share them; None: all of the job.
        rank: This process's place among these.
        size: How many these are.
        dtype: Element type of the whole parameters.
        reduces_wide: Whether gradients are reduced in the parts' element type.
    """

    groups: list[list[int]] | None
    rank: int
    size: int
    dtype: torch.dtype
    reduces_wide: bool


@dataclass
class Shard:
    """One parameter.

    Attributes:
        name: Its name in the wrapped module.
        places: The modules that have it, and under which name.
        own: This rank's part, flat.
        shape: Of the whole.
        sharing: How it is shared out.
        is_synchronised: Whether gradients are reduced now.
        waiting: Sum of the whole gradients that were not reduced yet.
    """

    name: str
    places: list[tuple[nn.Module, str]]
    own: nn.Parameter
    shape: torch.Size
    sharing: Sharing
    is_synchronised: bool = True
    waiting: torch.Tensor | None = field(default=None)

    def show(self, value: torch.Tensor) -> None:
        """Let its modules have the whole parameter, or this rank's part, as a plain attribute."""
        for owner, name in self.places:
            object.__setattr__(owner, name, value)

    def whole(self) -> torch.Tensor:
        """The parameter as all ranks' parts make it."""
        gathered = xm.all_gather(self.own.detach().to(self.sharing.dtype), groups=self.sharing.groups)
        return gathered[: self.shape.numel()].view(self.shape)

    def reduced(self, gradient: torch.Tensor) -> torch.Tensor | None:
        """This rank's part of the averaged gradient; None while it is only added up."""
        if self.waiting is not None:
            gradient = gradient + self.waiting
        self.waiting = None if self.is_synchronised else gradient
        if not self.is_synchronised:
            return None
        flat = padded(gradient.reshape(-1), self.sharing.size)
        wide = flat.to(self.own.dtype) if self.sharing.reduces_wide else flat
        size = self.sharing.size
        part = xm.reduce_scatter(xm.REDUCE_SUM, wide, 1.0 / size, 0, size, self.sharing.groups)
        return part.to(self.own.dtype)


class Gather(torch.autograd.Function):
    """A whole parameter in the forward pass; its gradient, shared out, in the backward pass."""

    @staticmethod
    def forward(ctx: Any, own: torch.Tensor, shard: Shard) -> torch.Tensor:
        """Gather."""
        ctx.shard = shard
        return shard.whole()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, None]:
        """Reduce and scatter."""
        return ctx.shard.reduced(gradient), None


class Resharding(torch.autograd.graph.saved_tensors_hooks):
    """Keeps no whole parameter for the backward pass: it is gathered again there."""

    def __init__(self, wholes: Sequence[tuple[Shard, torch.Tensor]]) -> None:
        by_value = {whole.lazy: shard for shard, whole in wholes if isinstance(whole, XlaTensor)}

        def pack(tensor: torch.Tensor) -> Any:
            found = (by_value.get(value) for value in _values(tensor))
            shard = next((each for each in found if each is not None), None)
            return (
                tensor if shard is None else (shard, tensor.size(), tensor.stride(), tensor.storage_offset())
            )

        super().__init__(pack, _unpacked)


def _values(tensor: torch.Tensor) -> list[LazyValue]:
    """A tensor's own value, and that of what it is a view of."""
    return [each.lazy for each in (tensor, tensor._base) if isinstance(each, XlaTensor)]


def _unpacked(packed: Any) -> torch.Tensor:
    if isinstance(packed, torch.Tensor):
        return packed
    shard, size, stride, offset = packed
    view: torch.Tensor = shard.whole().as_strided(size, stride, offset)
    return view


def padded(flat: torch.Tensor, size: int) -> torch.Tensor:
    """A flat tensor with zeros behind it, so that `size` ranks get equal parts."""
    missing = -flat.numel() % size
    return nn.functional.pad(flat, [0, missing]) if missing else flat


def plain_name(name: str) -> str:
    """A parameter's name in the model that nothing wraps."""
    return name.replace("_fsdp_wrapped_module.", "")
