"""`torch_xla.core.functions`: collectives that gradients pass through, and batch norm over all ranks."""

from __future__ import annotations

from typing import Any

import torch

from neuron_tools.frontends.torch_xla.errors import XlaError

from . import collective_calls as calls
from .ranks import get_ordinal, xrt_world_size

__all__ = ["AllGather", "AllReduce", "SyncBatchNorm", "all_gather", "all_reduce", "distributed_mm"]


class AllReduce(torch.autograd.Function):
    """A reduction whose gradient is that of this rank's own tensor, as each rank has the result's."""

    @staticmethod
    def forward(
        ctx: Any, input: torch.Tensor, reduce_type: str, scale: float, groups: list[list[int]] | None
    ) -> torch.Tensor:
        """The reduced tensor."""
        output: torch.Tensor = calls.all_reduce(reduce_type, input, scale, groups)
        ctx.reduce_type, ctx.scale = reduce_type, scale
        ctx.save_for_backward(input, output)
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> Any:
        """The gradient of what this rank brought; `input` and `output` differ by the scale.

        Raises:
            XlaError: The reduction is a logical one.
        """
        if ctx.reduce_type in (calls.REDUCE_AND, calls.REDUCE_OR):
            raise XlaError(
                f'No gradient passes through the reduction "{ctx.reduce_type}": detach what it takes.'
            )
        input, output = ctx.saved_tensors
        share = torch.ones_like(input)
        if ctx.reduce_type == calls.REDUCE_MUL:
            share = torch.where(input != 0, output / (input * ctx.scale), 0.0)
        elif ctx.reduce_type in (calls.REDUCE_MIN, calls.REDUCE_MAX):
            share = (input * ctx.scale == output).to(input.dtype)
        return grad_output * share * ctx.scale, None, None, None


class AllGather(torch.autograd.Function):
    """A gathered tensor whose gradient is this rank's part of it."""

    @staticmethod
    def forward(ctx: Any, input: torch.Tensor, dim: int) -> torch.Tensor:
        """All ranks' tensors."""
        ctx.dim = dim
        return calls.all_gather(input, dim)

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> Any:
        """This rank's part of the gradient."""
        return grad_output.chunk(xrt_world_size(), ctx.dim)[get_ordinal()].clone(), None


class _SummedBothWays(torch.autograd.Function):
    """A sum over the ranks, whose gradients are summed over them too."""

    @staticmethod
    def forward(ctx: Any, input: torch.Tensor) -> torch.Tensor:
        summed: torch.Tensor = calls.all_reduce(calls.REDUCE_SUM, input)
        return summed

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> Any:
        return calls.all_reduce(calls.REDUCE_SUM, grad_output)


def all_reduce(
    reduce_type: str, value: torch.Tensor, scale: float = 1.0, groups: list[list[int]] | None = None
) -> torch.Tensor:
    """Reduce over all ranks, so that gradients pass through.

    Args:
        reduce_type: `xm.REDUCE_SUM` and so on.
        value: What this rank brings.
        scale: Factor of the result.
        groups: Ranks that reduce among themselves; all by default.
    """
    reduced: torch.Tensor = AllReduce.apply(value, reduce_type, scale, groups)
    return reduced


def all_gather(value: torch.Tensor, dim: int = 0) -> torch.Tensor:
    """All ranks' tensors, one after the other along a dimension, so that gradients pass through."""
    gathered: torch.Tensor = AllGather.apply(value, dim)
    return gathered


def distributed_mm(w: torch.Tensor, x: torch.Tensor, split: int = 1) -> torch.Tensor:
    """A product whose left side lies over the ranks, cut along what is summed up.

    Args:
        w: This rank's part: (N, K / ranks).
        x: This rank's own right side: (K, M).
        split: In how many pieces of M the ranks' right sides are gathered, which take memory.

    Returns:
        This rank's product: (N, M).

    Raises:
        XlaError: The left side's parts have together not as many columns as the right side has rows.
    """
    if x.shape[0] != xrt_world_size() * w.shape[1]:
        raise XlaError(
            f"distributed_mm got a part with {w.shape[1]} columns for each of {xrt_world_size()} ranks and a "
            f"right side with {x.shape[0]} rows: let these be as many as all parts' columns."
        )
    first = get_ordinal() * w.shape[1]
    products = []
    for piece in x.chunk(split, 1):
        rows = all_gather(piece, 1)[first : first + w.shape[1]]
        products.append(all_reduce(calls.REDUCE_SUM, w @ rows).chunk(xrt_world_size(), 1)[get_ordinal()])
    return torch.cat(products, 1)


class SyncBatchNorm(torch.nn.Module):
    """Batch norm by the mean and variance of all ranks' batches.

    Args:
        num_features: Channels, the second dimension of a batch.
        eps: Added to the variance.
        momentum: Share of a new batch in what evaluation uses.
    """

    running_mean: torch.Tensor
    running_var: torch.Tensor

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.weight = torch.nn.Parameter(torch.ones(num_features))
        self.bias = torch.nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """The normed batch: (batch, channels, ...)."""
        mean, variance = self._statistics(batch) if self.training else (self.running_mean, self.running_var)
        mean, variance, weight, bias = (
            each.view(-1, *[1] * (batch.dim() - 2)) for each in (mean, variance, self.weight, self.bias)
        )
        return (batch - mean) * torch.rsqrt(variance + self.eps) * weight + bias

    def _statistics(self, batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        others = [axis for axis in range(batch.dim()) if axis != 1]
        own = torch.stack([batch.mean(others), batch.square().mean(others)])
        mean, square = _SummedBothWays.apply(own) / xrt_world_size()
        variance = square - mean.square()
        with torch.no_grad():
            self.running_mean.lerp_(mean.detach(), self.momentum)
            self.running_var.lerp_(variance.detach(), self.momentum)
        return mean, variance

    def extra_repr(self) -> str:
        """Its sizes, where it is printed."""
        return f"{self.num_features}, eps={self.eps}"
