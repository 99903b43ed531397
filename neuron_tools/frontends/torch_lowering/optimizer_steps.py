"""The mathematics of the fused optimizers, for one parameter.

Arguments are those of the ATen schema in order (`aten/src/ATen/native/native_functions.yaml`), one element of
each list; each function returns the new values of what it writes. Formulas: the `Algorithm` boxes of the
PyTorch documentation of `torch.optim`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch


def _gradient(gradient: Any, maximize: bool, scale: Any) -> Any:
    if scale is not None:
        gradient = gradient / scale
    return -gradient if maximize else gradient


def _adam(
    decoupled: bool, parameter: Any, gradient: Any, first: Any, second: Any, largest: Any, step: Any, lr: Any,
    beta1: float, beta2: float, weight_decay: float, eps: float, amsgrad: bool, maximize: bool, scale: Any,
    found_inf: Any,
) -> tuple[Any, ...]:  # fmt: skip
    gradient = _gradient(gradient, maximize, scale)
    if weight_decay and decoupled:
        parameter = parameter * (1 - lr * weight_decay)
    elif weight_decay:
        gradient = gradient + weight_decay * parameter
    first = first + (gradient - first) * (1 - beta1)
    second = second * beta2 + gradient * gradient * (1 - beta2)
    correction1, correction2 = 1 - torch.pow(beta1, step), 1 - torch.pow(beta2, step)
    bound = second
    if amsgrad:
        largest = bound = torch.maximum(largest, second)
    denominator = torch.sqrt(bound) / torch.sqrt(correction2) + eps
    parameter = parameter - (lr / correction1) * (first / denominator)
    return (parameter, first, second, largest) if amsgrad else (parameter, first, second)


def _momentum(
    parameter: Any, gradient: Any, buffer: Any, weight_decay: float, momentum: float, lr: Any,
    dampening: float, nesterov: bool, maximize: bool, is_first_step: bool, scale: Any, found_inf: Any,
) -> tuple[Any, ...]:  # fmt: skip
    gradient = _gradient(gradient, maximize, scale)
    if weight_decay:
        gradient = gradient + weight_decay * parameter
    if not momentum or buffer is None:
        return (parameter - lr * gradient,)
    buffer = gradient.clone() if is_first_step else buffer * momentum + gradient * (1 - dampening)
    direction = gradient + momentum * buffer if nesterov else buffer
    return parameter - lr * direction, buffer


def _adaptive_gradient(
    parameter: Any, gradient: Any, total: Any, step: Any, lr: Any, lr_decay: float, weight_decay: float,
    eps: float, maximize: bool, scale: Any, found_inf: Any,
) -> tuple[Any, ...]:  # fmt: skip
    gradient = _gradient(gradient, maximize, scale)
    if weight_decay:
        gradient = gradient + weight_decay * parameter
    rate = lr / (1 + (step - 1) * lr_decay)
    total = total + gradient * gradient
    return parameter - rate * gradient / (torch.sqrt(total) + eps), total


def _unscale(gradient: Any, found_inf: Any, inverse_scale: Any) -> tuple[Any, ...]:
    """Gradient scaling's check: 1.0 in `found_inf` where any gradient overflowed."""
    overflowed = torch.logical_not(torch.isfinite(gradient)).any().to(found_inf.dtype)
    return gradient * inverse_scale, torch.maximum(found_inf, overflowed)


STEPS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "_fused_adam": functools.partial(_adam, False),
    "_fused_adamw": functools.partial(_adam, True),
    "_fused_sgd": _momentum,
    "_fused_adagrad": _adaptive_gradient,
    "_amp_foreach_non_finite_check_and_unscale": _unscale,
}
