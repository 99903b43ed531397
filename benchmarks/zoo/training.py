"""One training step of a model, and whether the device computed what the CPU computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from benchmarks.zoo.case import Case, Inputs, outputs

LEARNING_RATE = 1e-3


def train_step(model: nn.Module, call: Callable[..., Any], inputs: Inputs) -> dict[str, torch.Tensor]:
    """Forward, backward and one AdamW step.

    Args:
        model: Whose parameters are trained.
        call: The model, or what `torch.compile` made of it.
        inputs: Keyword arguments of `call`.

    Returns:
        Loss, prediction and every gradient, by name.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    loss, prediction = outputs(call(**inputs))
    loss.backward()
    optimizer.step()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return {"loss": loss.detach(), "prediction": prediction.detach(), **gradients}


def step_on_cpu(case: Case) -> dict[str, torch.Tensor]:
    """The step's results by PyTorch's own CPU kernels."""
    model, inputs = case.make()
    return train_step(model, model, inputs)


def step_on_device(case: Case, *, compiled: bool) -> dict[str, torch.Tensor]:
    """The same step on the `neuron` device."""
    model, inputs = case.make("neuron")
    return train_step(model, torch.compile(model) if compiled else model, inputs)


def largest_difference(expected: dict[str, torch.Tensor], found: dict[str, torch.Tensor]) -> float:
    """The largest difference of any result, relative to that result's largest magnitude; inf for NaN."""
    if expected.keys() != found.keys():
        return float("inf")
    differences = [_difference(value, found[name].cpu()) for name, value in expected.items()]
    return max(differences)


def _difference(expected: torch.Tensor, found: torch.Tensor) -> float:
    scale = expected.abs().max().clamp(min=torch.finfo(expected.dtype).tiny)
    difference = float((expected - found).abs().max() / scale)
    return difference if difference == difference else float("inf")
