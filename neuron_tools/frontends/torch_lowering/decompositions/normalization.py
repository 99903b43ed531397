"""Batch normalisation under the names that devices use."""

from __future__ import annotations

from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes

_aten = torch.ops.aten


@decomposes(_aten._batch_norm_with_update_functional.default)
def _with_update(
    data: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
) -> tuple[Any, ...]:
    output, mean, inverse, new_mean, new_var = _aten._native_batch_norm_legit_functional(
        data, weight, bias, running_mean, running_var, True, momentum, eps
    )
    return output, mean, inverse, torch.empty(0, dtype=torch.uint8), new_mean, new_var


@decomposes(_aten._batch_norm_no_update.default)
def _without_update(
    data: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
) -> tuple[Any, ...]:
    output = _normalized(data, weight, bias, running_mean, running_var, eps)
    empty = torch.empty(0)
    return output, empty, empty, torch.empty(0, dtype=torch.uint8)


@decomposes(_aten.batch_norm_backward.default)
def _backward(
    gradient: Any, data: Any, weight: Any, running_mean: Any, running_var: Any, save_mean: Any, save_var: Any,
    update: bool, eps: float, output_mask: Any, reserve: Any,
) -> Any:  # fmt: skip
    return _aten.native_batch_norm_backward(
        gradient, data, weight, running_mean, running_var, save_mean, save_var, update, eps, output_mask
    )


@decomposes(_aten.native_batch_norm.default)
def _native(
    data: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float,
    eps: float,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Also writes the running statistics, when training."""
    if not training:
        return _normalized(data, weight, bias, running_mean, running_var, eps), torch.empty(0), torch.empty(0)
    output, mean, inverse, new_mean, new_var = _aten._native_batch_norm_legit_functional(
        data, weight, bias, running_mean, running_var, True, momentum, eps
    ) if running_mean is not None else (
        *_aten._native_batch_norm_legit.no_stats(data, weight, bias, True, momentum, eps), None, None
    )  # fmt: skip
    if new_mean is not None:
        running_mean.copy_(new_mean)
        running_var.copy_(new_var)
    return output, mean, inverse


def _normalized(data: Any, weight: Any, bias: Any, mean: Any, variance: Any, eps: float) -> Any:
    """One multiplication and one addition per element: the statistics are known."""
    factor = torch.rsqrt(variance + eps)
    if weight is not None:
        factor = factor * weight
    shift = -mean * factor if bias is None else bias - mean * factor
    shape = [1, -1] + [1] * (data.dim() - 2)
    return (data * factor.reshape(shape) + shift.reshape(shape)).to(data.dtype)


@decomposes(_aten._weight_norm_interface_backward.default)
def _weight_norm_backward(gradient: Any, direction: Any, size: Any, norms: Any, dim: int) -> tuple[Any, Any]:
    """Gradients of the direction, of which the part along it is lost, and of the size."""
    others = [d for d in range(direction.dim()) if d != dim % direction.dim()]
    along = (gradient * direction).sum(others, keepdim=True) / norms
    return size / norms * (gradient - direction * along / norms), along
