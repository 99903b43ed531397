"""`torch_neuronx.testing`: whether what the device gave is what the CPU gave."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from .validation import AllCloseSummary, custom_allclose, neuron_allclose

__all__ = ["AllCloseSummary", "assert_close", "custom_allclose", "neuron_allclose"]


def assert_close(actual: Any, expected: Any, **options: Any) -> None:
    """`torch.testing.assert_close` of values on any devices.

    Args:
        actual: Tensors, in any structure.
        expected: Tensors in the same structure.
        **options: Of `torch.testing.assert_close`, such as `rtol` and `atol`.

    Raises:
        AssertionError: They differ by more than the tolerances.
    """
    torch.testing.assert_close(_on_host(actual), _on_host(expected), **options)


def _on_host(values: Any) -> Any:
    return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.detach().cpu(), values)
