"""Refuses training on a chip that only runs compiled models."""

from __future__ import annotations

import torch

from neuron_tools.errors import NeuronToolsError

ONLY_INFERENCE = 1
"""The generation of NeuronCores without training: Inferentia 1."""


class TrainingError(NeuronToolsError, RuntimeError):
    """A gradient is wanted on a chip that computes none."""


def refuse_training(loss: torch.Tensor) -> None:
    """Check that gradients of a loss can be had on its device.

    Raises:
        TrainingError: The device is an Inferentia 1.
    """
    if loss.device.type not in ("neuron", "xla") or torch.neuron.get_device_capability()[0] != ONLY_INFERENCE:
        return
    raise TrainingError(
        "Inferentia 1 cannot train: its NeuronCores run models that torch_neuron.trace compiled, without "
        "gradients; train with --target trn1 (or inf2, trn2, trn3), and trace the result for inf1."
    )
