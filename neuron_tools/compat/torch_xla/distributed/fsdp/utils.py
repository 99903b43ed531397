"""`torch_xla.distributed.fsdp.utils`: activation checkpointing of a module; linear layers."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint

from neuron_tools.frontends.torch_xla.linear import apply_xla_patch_to_nn_linear

__all__ = ["apply_xla_patch_to_nn_linear", "checkpoint_module"]


def checkpoint_module(module: nn.Module) -> nn.Module:
    """Let a module compute its activations again in the backward pass; it is changed in place."""
    forward: Any = module.forward
    module.forward = partial(checkpoint, forward, use_reentrant=False)
    return module
