"""The negative log-likelihood loss as comparisons with class numbers, as PyTorch/XLA lowers it.

Gathers and scatters along a dimension make a partitioner exchange indices; comparisons are cut like any
elementwise operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

_aten = torch.ops.aten
_MEAN, _NONE = 1, 0


def _forward(
    scores: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, reduction: int, ignore_index: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss and the sum of weights.

    Args:
        scores: Log-probabilities, (classes,), (rows, classes) or (rows, classes, ...).
        target: Class numbers, without that axis.
        weight: Of each class.
        reduction: 0: of each row, 1: their mean, 2: their sum.
        ignore_index: A class number that does not count.
    """
    axis, chosen = _chosen(scores, target, ignore_index)
    weights = _weights(scores, weight, chosen, axis)
    losses = -torch.where(chosen, scores, 0).sum(axis) * weights
    if reduction == _NONE:
        return losses, scores.new_zeros(())
    total = weights.sum()
    return (losses.sum() / total if reduction == _MEAN else losses.sum()), total


def _backward(
    gradient: torch.Tensor,
    scores: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    reduction: int,
    ignore_index: int,
    total: torch.Tensor,
) -> torch.Tensor:
    """The gradient of `scores`."""
    axis, chosen = _chosen(scores, target, ignore_index)
    share = gradient / total if reduction == _MEAN else gradient
    return torch.where(chosen, (-share * _weights(scores, weight, chosen, axis)).unsqueeze(axis), 0)


def _chosen(scores: torch.Tensor, target: torch.Tensor, ignore_index: int) -> tuple[int, torch.Tensor]:
    """The axis of classes, and which class each row chooses: of the scores' shape."""
    axis = min(1, scores.dim() - 1)
    numbers = _along(torch.arange(scores.shape[axis], device=scores.device), scores.dim() - 1 - axis)
    return axis, ((numbers == target.unsqueeze(axis)) & (target != ignore_index).unsqueeze(axis))


def _weights(
    scores: torch.Tensor, weight: torch.Tensor | None, chosen: torch.Tensor, axis: int
) -> torch.Tensor:
    if weight is None:
        return chosen.to(scores.dtype).sum(axis)
    return torch.where(chosen, _along(weight, scores.dim() - 1 - axis), 0).sum(axis)


def _along(values: torch.Tensor, axes_behind: int) -> torch.Tensor:
    return values.reshape(-1, *[1] * axes_behind)


COMPARED: Mapping[Any, Callable[..., Any]] = {
    _aten.nll_loss_forward.default: _forward,
    _aten.nll_loss_backward.default: _backward,
    _aten.nll_loss2d_forward.default: _forward,
    _aten.nll_loss2d_backward.default: _backward,
}
"""For operators, what they are then."""
