"""`torch.classes.neuron`: names of AWS's runtime classes, which libraries use in annotations."""

from __future__ import annotations

import torch

from neuron_tools.compat.absent import Absent

NAMES = ("LayoutTransformation", "Model", "ParallelModel", "SPMDBucketModel", "SPMDModel")


def register() -> None:
    """Let the names be found."""
    for name in NAMES:
        stand_in = Absent(f"torch.classes.neuron.{name}", "it runs AWS's own files; use torch_neuronx.trace.")
        setattr(torch.classes.neuron, name, stand_in)
