"""`torch_xla.distributed.fsdp.utils`: activation checkpointing of a module; linear layers."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import nn

from neuron_tools.frontends.torch_xla.linear import apply_xla_patch_to_nn_linear

from ...utils.checkpoint import checkpoint  # noqa: TID252  # found as torch_xla

__all__ = ["apply_xla_patch_to_nn_linear", "checkpoint_module"]


def checkpoint_module(module: nn.Module) -> nn.Module:
    """Let a module compute its activations again in the backward pass; it is changed in place."""
    forward: Any = module.forward
    module.forward = partial(checkpoint, forward)
    return module
