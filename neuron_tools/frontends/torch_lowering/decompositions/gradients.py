"""Backward operators as what differentiating their forward operator, taken apart, gives.

Linear resampling and padding have no values to keep: their backward is a transposition. The others are
differentiated where the forward pass stood.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch._decomp

from neuron_tools.frontends.torch_lowering.decompositions.grid_sampling import grid_sampler
from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes, replaces

_aten = torch.ops.aten


def _pulled_back(forward: Callable[..., Any], gradient: Any, *primals: Any) -> tuple[Any, ...]:
    """Gradients of the primals where `forward(*primals)` has this gradient."""
    with torch.enable_grad():
        variables = [primal.detach().requires_grad_() for primal in primals]
        result = forward(*variables)
        gradients = torch.autograd.grad(result, variables, gradient, allow_unused=True)
    return tuple(
        torch.zeros_like(primal) if found is None else found for primal, found in zip(primals, gradients)
    )


def _decomposed(overload: Any) -> Callable[..., Any]:
    """PyTorch's own decomposition of a forward operator."""
    found: Callable[..., Any] = torch._decomp.global_decomposition_table["post_autograd"][overload]
    return found


def _transposed(forward: Callable[[Any], Any], gradient: Any, sizes: Any) -> Any:
    """The transpose of a linear operator, applied to a gradient."""
    return _pulled_back(forward, gradient, torch.zeros(list(sizes), dtype=gradient.dtype))[0]


@replaces(_aten.grid_sampler_2d_backward.default, _aten.grid_sampler_3d_backward.default)
def _grid_sampler_backward(
    gradient: Any, data: Any, grid: Any, interpolation: int, padding: int, align_corners: bool, mask: Any
) -> tuple[Any, Any]:
    def forward(data: Any, grid: Any) -> Any:
        return grid_sampler(data, grid, interpolation, padding, align_corners)

    gradients = _pulled_back(forward, gradient, data, grid)
    return gradients[0] if mask[0] else None, gradients[1]


@replaces(_aten.upsample_bicubic2d_backward.default)
def _bicubic_backward(
    gradient: Any, output_size: Any, input_size: Any, align_corners: bool, scales_h: Any = None,
    scales_w: Any = None,
) -> Any:  # fmt: skip
    forward = _decomposed(_aten.upsample_bicubic2d.default)
    return _transposed(
        lambda data: forward(data, list(output_size), align_corners, scales_h, scales_w), gradient, input_size
    )


@decomposes(
    _aten.replication_pad1d_backward.default,
    _aten.replication_pad2d_backward.default,
    _aten.replication_pad3d_backward.default,
)
def _replication_backward(gradient: Any, data: Any, padding: Any) -> Any:
    rank = len(padding) // 2
    result = gradient
    for position in range(rank):
        dim = data.dim() - 1 - position
        low, high = padding[2 * position], padding[2 * position + 1]
        result = _replicated_back(result, dim, data.shape[dim], low, high)
    return result


def _replicated_back(gradient: Any, dim: int, extent: int, low: int, high: int) -> Any:
    """What was repeated beyond an edge is added to the edge; a negative padding had cut the edge off."""
    kept = gradient.narrow(dim, max(low, 0), gradient.shape[dim] - max(low, 0) - max(high, 0))
    pads = [0, 0] * (gradient.dim() - dim - 1) + [max(-low, 0), max(-high, 0)]
    kept = _aten.constant_pad_nd(kept, pads)
    if low > 0:
        kept = kept + _at(gradient.narrow(dim, 0, low).sum(dim, keepdim=True), dim, 0, extent)
    if high > 0:
        tail = gradient.narrow(dim, gradient.shape[dim] - high, high).sum(dim, keepdim=True)
        kept = kept + _at(tail, dim, extent - 1, extent)
    return kept


def _at(tensor: Any, dim: int, position: int, extent: int) -> Any:
    """Zeros along `dim` but for one place."""
    return _aten.constant_pad_nd(
        tensor, [0, 0] * (tensor.dim() - dim - 1) + [position, extent - 1 - position]
    )


@decomposes(_aten._cdist_backward.default)
def _distances_backward(gradient: Any, first: Any, second: Any, p: float, distances: Any) -> Any:
    """Gradient of the first of the two point sets; 0 where two points are equal."""
    difference = first.unsqueeze(-2) - second.unsqueeze(-3)
    outer, distance = gradient.unsqueeze(-1), distances.unsqueeze(-1)
    size, sign = torch.abs(difference), torch.sign(difference)
    if p == 0:
        return torch.zeros_like(first)
    if p == 1:
        part = sign * outer
    elif p == float("inf"):
        part = torch.where(size == distance, sign * outer, 0.0)
    else:
        part = sign * torch.pow(size, p - 1) * outer / torch.pow(distance, p - 1)
        part = torch.where(distance == 0, 0.0, part)
    return part.sum(-2)


@decomposes(_aten.softshrink_backward.default, _aten.hardshrink_backward.default)
def _shrink_backward(gradient: Any, data: Any, limit: Any) -> Any:
    return torch.where(torch.abs(data) <= limit, torch.zeros((), dtype=gradient.dtype), gradient)


@replaces(_aten.multi_margin_loss_backward.default)
def _multi_margin_backward(
    gradient: Any, data: Any, target: Any, p: Any, margin: Any, weight: Any = None, reduction: int = 1
) -> Any:
    forward = _decomposed(_aten.multi_margin_loss.default)
    return _pulled_back(lambda data: forward(data, target, p, margin, weight, reduction), gradient, data)[0]


@replaces(_aten.multilabel_margin_loss_backward.default)
def _multilabel_margin_backward(gradient: Any, data: Any, target: Any, reduction: int, is_target: Any) -> Any:
    forward = _decomposed(_aten.multilabel_margin_loss_forward.default)
    return _pulled_back(lambda data: forward(data, target, reduction)[0], gradient, data)[0]
