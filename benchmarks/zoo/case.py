"""One model of the zoo: how to make it, what to feed it, what to look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

Inputs = dict[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Case:
    """A model with its inputs.

    Attributes:
        name: What tables call it.
        build: Makes the model; weights follow from PyTorch's seed.
        inputs: Makes keyword arguments of a call, on the CPU.
        generates: Whether `model.generate` makes tokens greedily.
    """

    name: str
    build: Callable[[], nn.Module]
    inputs: Callable[[], Inputs]
    generates: bool = False

    def make(
        self, device: str = "cpu", seed: int = 0, dtype: torch.dtype = torch.float32
    ) -> tuple[nn.Module, Inputs]:
        """The model in training mode and its inputs; the same values on every device.

        `dtype` is that of the weights and of inputs that are not whole numbers.
        """
        torch.manual_seed(seed)
        model, inputs = self.build().train(), self.inputs()
        placed = {
            name: value.to(device, dtype if value.is_floating_point() else None)
            for name, value in inputs.items()
        }
        return model.to(device, dtype), placed


def outputs(result: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss and prediction of a call: of a transformers output, or of the pair that our own models return.

    A model without a loss of its own is asked for small outputs: the sum of their mean squares.
    """
    if isinstance(result, tuple):
        loss, prediction = result
        return loss, prediction
    own = result.get("loss")
    found = [value for name, value in result.items() if name != "loss" and _is_real(value)]
    return sum(value.square().mean() for value in found) if own is None else own, found[0]


def _is_real(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()
