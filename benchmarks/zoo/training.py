"""One training step of a model, and whether the device computed what the CPU computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from benchmarks.zoo.case import Case, Inputs, outputs

LEARNING_RATE = 1e-3
Tensors = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class StepResult:
    """What a training step computed.

    Attributes:
        values: Loss, prediction and every gradient, by name.
        parameters: Every parameter after the step, by name.
    """

    values: Tensors
    parameters: Tensors


def train_step(model: nn.Module, call: Callable[..., Any], inputs: Inputs) -> StepResult:
    """Forward, backward and one AdamW step.

    Args:
        model: Whose parameters are trained.
        call: The model, or what `torch.compile` made of it.
        inputs: Keyword arguments of `call`.
    """
    loss, prediction = outputs(call(**inputs))
    loss.backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    values = {"loss": loss.detach(), "prediction": prediction.detach(), **gradients}
    return StepResult(values, _after_step(model))


def step_on_cpu(case: Case, dtype: torch.dtype = torch.float32) -> StepResult:
    """The step's results by PyTorch's own CPU kernels."""
    model, inputs = case.make(dtype=dtype)
    return train_step(model, model, inputs)


def step_on_device(case: Case, *, compiled: bool, dtype: torch.dtype = torch.float32) -> StepResult:
    """The same step on the `neuron` device."""
    model, inputs = case.make("neuron", dtype=dtype)
    return train_step(model, torch.compile(model) if compiled else model, inputs)


def parameters_from(case: Case, gradients: Tensors, dtype: torch.dtype = torch.float32) -> Tensors:
    """The parameters after a step of the CPU's AdamW with given gradients, by name.

    AdamW's first step is the learning rate in the direction of each gradient: where a gradient is all but
    zero, its rounding decides. So the optimizer is judged with the device's own gradients.
    """
    model, _ = case.make(dtype=dtype)
    for name, parameter in model.named_parameters():
        if name in gradients:
            parameter.grad = gradients[name].cpu()
    return _after_step(model)


def largest_difference(expected: Tensors, found: Tensors) -> float:
    """The largest difference of any tensor, relative to its largest magnitude; inf for NaN.

    A magnitude below the rounding of the largest of all is rounding itself: that of a gradient that cancels
    out, such as that of the keys' bias before a softmax.
    """
    if expected.keys() != found.keys():
        return float("inf")
    rounding = torch.finfo(torch.float32).eps * max(_largest(value) for value in expected.values())
    return max(_difference(value, found[name].cpu(), rounding) for name, value in expected.items())


def _largest(tensor: torch.Tensor) -> float:
    return float(tensor.abs().max()) if tensor.numel() else 0.0


def _after_step(model: nn.Module) -> Tensors:
    torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE).step()
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def _difference(expected: torch.Tensor, found: torch.Tensor, rounding: float) -> float:
    scale = max(_largest(expected), rounding, torch.finfo(expected.dtype).tiny)
    difference = _largest(expected.float() - found.float()) / scale
    return difference if difference == difference else float("inf")
