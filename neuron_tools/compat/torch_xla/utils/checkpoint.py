"""`torch_xla.utils.checkpoint`: activation checkpointing whose second computation no compiler merges away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import checkpoint as _checkpoint

from neuron_tools.frontends.torch_xla.barrier import put_barrier
from neuron_tools.frontends.torch_xla.errors import XlaError

__all__ = ["checkpoint"]


def checkpoint(
    function: Callable[..., Any], *args: Any, use_reentrant: bool = True, preserve_rng_state: bool = True
) -> Any:
    """Keep no activations of a function: its backward pass computes them again.

    Args:
        function: What is computed twice.
        args: Its arguments.
        use_reentrant: PyTorch/XLA has this form only.
        preserve_rng_state: Draw the same random numbers again.

    Raises:
        XlaError: The other form is asked for.
    """
    if not use_reentrant:
        raise XlaError("torch_xla.utils.checkpoint has no use_reentrant=False: leave it out.")

    def run(*inputs: Any) -> Any:
        results = function(*inputs)
        if not torch.is_grad_enabled():  # the forward pass, which keeps nothing but the inputs
            put_barrier(pytree.tree_leaves((inputs, results)))
        return results

    return _checkpoint(run, *args, use_reentrant=True, preserve_rng_state=preserve_rng_state)
