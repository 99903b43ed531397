"""`torch_xla.distributed.fsdp.utils`: activation checkpointing of a module."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint


def checkpoint_module(module: nn.Module) -> nn.Module:
    """Let a module compute its activations again in the backward pass; it is changed in place."""
    forward: Any = module.forward
    module.forward = partial(checkpoint, forward, use_reentrant=False)
    return module
