"""The loss of connectionist temporal classification (Graves et al. 2006), its gradient: loops over frames.

States are the target's labels with a blank before, between and after them. The result's size depends on the
longest target: it has states for as many labels as there can be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.decompositions.registry import replaces
from neuron_tools.frontends.torch_lowering.recurrence import recur, step

_aten = torch.ops.aten


@replaces(_aten._ctc_loss.default, _aten._ctc_loss.Tensor)
def _ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """Negative log likelihoods, [batch]; log probabilities of all beginnings, [batch, frames, states]."""
    input_lengths, target_lengths = _as_tensor(input_lengths), _as_tensor(target_lengths)
    states, skips = _states(targets, target_lengths, blank, log_probs.shape[-1])
    emitted = _emitted(log_probs, states)
    alpha = _beginnings(emitted, skips)
    last = torch.where(
        input_lengths.unsqueeze(1) > 0, _at_frame(alpha, input_lengths - 1), _before_frames(emitted)
    )
    ends = _ends(target_lengths, states.shape[1])
    likelihood = torch.logsumexp(torch.where(ends, last, -math.inf), 1)
    return -likelihood, alpha


@replaces(_aten._ctc_loss_backward.default, _aten._ctc_loss_backward.Tensor)
def _ctc_loss_backward(
    gradient: Any, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, loss: Any,
    alpha: Any, blank: int, zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """What is predicted less what the target's paths expect, in each frame that a sequence has."""
    input_lengths, target_lengths = _as_tensor(input_lengths), _as_tensor(target_lengths)
    states, skips = _states(targets, target_lengths, blank, log_probs.shape[-1], alpha.shape[-1])
    emitted = _emitted(log_probs, states)
    beta = _endings(emitted, skips, input_lengths, target_lengths)
    occupied = torch.exp(alpha + beta - emitted + loss[:, None, None])
    occupied = torch.where((alpha == -math.inf) | (beta == -math.inf), 0.0, occupied)
    one_hot = (states.unsqueeze(2) == torch.arange(log_probs.shape[-1])).to(occupied.dtype)
    expected = torch.matmul(occupied, one_hot).transpose(0, 1)
    result = (torch.exp(log_probs) - expected) * gradient[None, :, None]
    of_infinity = 0.0 if zero_infinity else math.nan
    result = torch.where((loss == math.inf)[None, :, None], of_infinity, result)
    frames = torch.arange(log_probs.shape[0])[:, None, None]
    return torch.where(frames < input_lengths[None, :, None], result, 0.0)


def _as_tensor(lengths: Any) -> Any:
    if isinstance(lengths, torch.Tensor):
        return lengths
    return torch.stack([torch.full((), length, dtype=torch.int64) for length in lengths])


def _states(
    targets: Any, target_lengths: Any, blank: int, classes: int, count: int | None = None
) -> tuple[Any, Any]:
    """[batch, states]: the label of each state, and whether it may follow the state two before it."""
    labels = _labels(targets, target_lengths)
    if count is not None:
        labels = labels[:, : (count - 1) // 2]
    labels = labels.clamp(min=0, max=classes - 1)
    batch, length = labels.shape
    blanks = torch.full((batch, max(length, 1)), blank, dtype=labels.dtype)
    if length == 0:
        return blanks, torch.zeros_like(blanks, dtype=torch.bool)
    states = torch.cat([torch.stack([blanks, labels], 2).reshape(batch, 2 * length), blanks[:, :1]], 1)
    two_before = torch.cat([torch.full((batch, 2), blank, dtype=labels.dtype), states[:, :-2]], 1)
    return states, (states != blank) & (states != two_before)


def _labels(targets: Any, target_lengths: Any) -> Any:
    """[batch, labels]; targets that follow one another in one row are taken apart."""
    if targets.dim() == 2:
        return targets
    if targets.shape[0] == 0:
        return targets.expand(target_lengths.shape[0], 0)
    begins = torch.cumsum(target_lengths, 0) - target_lengths
    places = begins.unsqueeze(1) + torch.arange(targets.shape[0])
    places = places.clamp(max=targets.shape[0] - 1)
    return torch.index_select(targets, 0, places.reshape(-1)).reshape(places.shape)


def _emitted(log_probs: Any, states: Any) -> Any:
    """[batch, frames, states]: log probability of each state's label in each frame."""
    frames = log_probs.shape[0]
    index = states.unsqueeze(1).expand(-1, frames, -1)
    return torch.gather(log_probs.transpose(0, 1), 2, index)


def _beginnings(emitted: Any, skips: Any) -> Any:
    """Log probability of all paths up to each frame that end in each state."""
    _, (rows,) = recur(_extended, [_before_frames(emitted)], [emitted.transpose(0, 1)], [skips])
    return rows.transpose(0, 1)


def _before_frames(emitted: Any) -> Any:
    """[batch, states]: log probability of each state of the path that has no frame yet."""
    before = torch.where(torch.arange(emitted.shape[2]) == 0, 0.0, -math.inf).to(emitted.dtype)
    return before.expand_as(emitted[:, 0])


@step
def _extended(carried: Sequence[Any], row: Sequence[Any], fixed: Sequence[Any]) -> tuple[Any, Any]:
    """Paths one frame longer."""
    (before,), (emitted,), (skips,) = carried, row, fixed
    skipped = torch.where(skips, _moved(before, 2), -math.inf)
    paths = _log_sum(before, _moved(before, 1), skipped) + emitted
    return [paths], [paths]


def _endings(emitted: Any, skips: Any, input_lengths: Any, target_lengths: Any) -> Any:
    """Log probability of all paths from each frame on that begin in each state; -inf after the sequence."""
    ends = _ends(target_lengths, emitted.shape[2])
    skipped_to = _moved(skips.to(emitted.dtype), -2, 0.0) > 0
    is_last = (input_lengths == torch.arange(1, emitted.shape[1] + 1).unsqueeze(1)).unsqueeze(2)
    after = torch.full_like(emitted[:, 0], -math.inf)
    tables = [emitted.transpose(0, 1), is_last]
    _, (rows,) = recur(_prolonged, [after], tables, [ends, skipped_to], backwards=True)
    return rows.transpose(0, 1)


@step
def _prolonged(carried: Sequence[Any], row: Sequence[Any], fixed: Sequence[Any]) -> tuple[Any, Any]:
    """Paths that begin one frame earlier, or that are the last frame alone."""
    (following,), (emitted, is_last), (ends, skipped_to) = carried, row, fixed
    skipped = torch.where(skipped_to, _moved(following, -2), -math.inf)
    inside = _log_sum(following, _moved(following, -1), skipped) + emitted
    paths = torch.where(is_last & ends, emitted, inside)
    return [paths], [paths]


def _ends(target_lengths: Any, states: int) -> Any:
    """[batch, states]: the last label, and the blank behind it, with which a path may end."""
    places, end = torch.arange(states), 2 * target_lengths.unsqueeze(1)
    return (places == end) | (places == end - 1)


def _moved(row: Any, places: int, fill: float = -math.inf) -> Any:
    """Each state's value `places` states later, or earlier."""
    moved = _aten.constant_pad_nd(row, [max(places, 0), max(-places, 0)], fill)
    return moved.narrow(1, max(-places, 0), row.shape[1])


def _log_sum(first: Any, second: Any, third: Any) -> Any:
    """The logarithm of a sum of exponentials; of nothing but -inf it is that."""
    largest = torch.maximum(torch.maximum(first, second), third)
    base = torch.where(largest == -math.inf, 0.0, largest)
    return torch.log(torch.exp(first - base) + torch.exp(second - base) + torch.exp(third - base)) + base


def _at_frame(values: Any, frames: Any) -> Any:
    """[batch, states] of [batch, frames, states]: each sequence at a frame of its own."""
    index = frames.clamp(min=0)[:, None, None].expand(-1, 1, values.shape[2])
    return torch.gather(values, 1, index).squeeze(1)
