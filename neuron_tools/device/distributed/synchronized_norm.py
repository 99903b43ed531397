"""The steps of `torch.nn.SyncBatchNorm` on neuron tensors: PyTorch has kernels of them for GPUs only.

Each is written in operators that the device times. Sums run over all dimensions but the second, the channels.
Source of the formulas: parallel variance of Chan, Golub and LeVeque; gradient of batch normalisation.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import torch

Tensor: TypeAlias = "torch.Tensor"
_library: list[Any] = []


def register() -> None:
    """Give the device its kernels; called once."""
    library = torch.library.Library("aten", "IMPL")
    library.impl("batch_norm_stats", statistics, "PrivateUse1")
    library.impl("batch_norm_gather_stats_with_counts", gathered_statistics, "PrivateUse1")
    library.impl("batch_norm_elemt", normalized, "PrivateUse1")
    library.impl("batch_norm_backward_reduce", backward_sums, "PrivateUse1")
    library.impl("batch_norm_backward_elemt", backward, "PrivateUse1")
    _library.append(library)  # it is undone when the library goes


def statistics(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Mean and reciprocal standard deviation of each channel, float32 of shape (channels,)."""
    variance, mean = torch.var_mean(x.float(), _others(x), correction=0)
    return mean, torch.rsqrt(variance + eps)


def gathered_statistics(
    x: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """Those of all ranks together.

    Args:
        mean, invstd: Of each rank, (ranks, channels).
        counts: Elements a channel of each rank, (ranks,).
    """
    share, total = counts.float().view(-1, 1), counts.float().sum()
    joined = (mean * share).sum(0) / total
    spread = (invstd**-2 - eps + (mean - joined) ** 2) * share
    variance = spread.sum(0) / total
    if running_mean is not None:
        running_mean.lerp_(joined.to(running_mean.dtype), momentum)
    if running_var is not None:
        unbiased = spread.sum(0) / (total - 1)
        running_var.lerp_(unbiased.to(running_var.dtype), momentum)
    return joined, torch.rsqrt(variance + eps)


def normalized(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, invstd: Tensor, eps: float
) -> Tensor:
    """(x - mean) / deviation x weight + bias."""
    y = (x - _spread(mean, x)) * _spread(invstd, x)
    if weight is not None:
        y = y * _spread(weight, x)
    return (y if bias is None else y + _spread(bias, x)).to(x.dtype)


def backward_sums(
    grad: Tensor,
    x: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    input_g: bool,
    weight_g: bool,
    bias_g: bool,
) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
    """Sums of the gradient and of gradient x (x - mean), and the gradients of weight and bias."""
    total = grad.float().sum(_others(x))
    along = (grad.float() * (x - _spread(mean, x))).sum(_others(x))
    like = mean.dtype if weight is None else weight.dtype
    return (
        total if input_g else None,
        along if input_g else None,
        (along * invstd).to(like) if weight_g else None,
        total.to(like) if bias_g else None,
    )


def backward(
    grad: Tensor,
    x: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    sum_dy: Tensor,
    sum_dy_xmu: Tensor,
    count: Tensor,
) -> Tensor:
    """Gradient of x, from the sums of all ranks.

    Args:
        count: Elements a channel of each rank, (ranks,).
    """
    total = count.float().sum()
    along = (x - _spread(mean, x)) * _spread(invstd * invstd * sum_dy_xmu / total, x)
    scale = invstd if weight is None else invstd * weight
    return ((grad - _spread(sum_dy / total, x) - along) * _spread(scale, x)).to(x.dtype)


def _others(x: Tensor) -> list[int]:
    return [dimension for dimension in range(x.dim()) if dimension != 1]


def _spread(of_channels: Tensor, x: Tensor) -> Tensor:
    """(channels,) as (1, channels, 1, ...)."""
    return of_channels.view(1, -1, *[1] * (x.dim() - 2))
