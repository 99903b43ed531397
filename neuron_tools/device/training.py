"""Refuses training on a chip that only runs compiled models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from neuron_tools.device.native import around
from neuron_tools.errors import NeuronToolsError

ONLY_INFERENCE = 1
"""The generation of NeuronCores without training: Inferentia 1."""


class TrainingError(NeuronToolsError, RuntimeError):
    """A gradient is wanted on a chip that computes none."""


def install() -> None:
    """Let whatever computes gradients check first that the device can: `backward`, `torch.autograd.grad`."""
    torch.autograd._engine_run_backward = around(torch.autograd._engine_run_backward, refuse_training, None)


def refuse_training(outputs: Sequence[Any]) -> None:
    """Check that gradients of tensors can be had on their devices.

    Raises:
        TrainingError: One is on an Inferentia 1.
    """
    if any(map(_cannot_train, outputs)):
        raise TrainingError(
            "Inferentia 1 cannot train: its NeuronCores run models that torch_neuron.trace compiled, without "
            "gradients; train with --target trn1 (or inf2, trn2, trn3), and trace the result for inf1."
        )


def _cannot_train(output: Any) -> bool:
    on_device = isinstance(output, torch.Tensor) and output.device.type in ("neuron", "xla")
    return on_device and torch.neuron.get_device_capability()[0] == ONLY_INFERENCE
