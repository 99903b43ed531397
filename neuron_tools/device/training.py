"""Refuses training on a chip that only runs compiled models."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

from neuron_tools.errors import NeuronToolsError

ONLY_INFERENCE = 1
"""The generation of NeuronCores without training: Inferentia 1."""


class TrainingError(NeuronToolsError, RuntimeError):
    """A gradient is wanted on a chip that computes none."""


def install() -> None:
    """Let whatever computes gradients check first that the device can: `backward`, `torch.autograd.grad`."""
    torch.autograd._engine_run_backward = _checked(torch.autograd._engine_run_backward)


def _checked(compute: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(compute)
    def checked(outputs: Any, *args: Any, **kwargs: Any) -> Any:
        if any(map(_cannot_train, outputs)):
            raise TrainingError(
                "Inferentia 1 cannot train: its NeuronCores run models that torch_neuron.trace compiled, "
                "without gradients; train with --target trn1 (or inf2, trn2, trn3), and trace the result for "
                "inf1."
            )
        return compute(outputs, *args, **kwargs)

    return checked


def _cannot_train(output: Any) -> bool:
    on_device = isinstance(output, torch.Tensor) and output.device.type in ("neuron", "xla")
    return on_device and torch.neuron.get_device_capability()[0] == ONLY_INFERENCE
