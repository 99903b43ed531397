"""`torch_neuronx.testing.validation`: tensors are compared by the largest value that is expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .logits import (
    DEFAULT_DIVERGENCE_DIFFERENCE_TOLERANCE,
    DEFAULT_TOLERANCE_MAP,
    logit_validation,
)

__all__ = [
    "DEFAULT_DIVERGENCE_DIFFERENCE_TOLERANCE", "DEFAULT_TOLERANCE_MAP", "AllCloseSummary", "assert_close",
    "custom_allclose", "logit_validation", "neuron_allclose",
]  # fmt: skip
RELATIVE, ABSOLUTE = 1e-2, 1e-5


@dataclass(frozen=True)
class AllCloseSummary:
    """What a comparison found.

    Attributes:
        allclose: Whether all values are near enough.
        max_rel_error: The largest difference, as a share of the largest expected value.
        max_abs_error: The largest difference.
    """

    allclose: bool
    max_rel_error: float
    max_abs_error: float


def neuron_allclose(
    actual: torch.Tensor, expected: torch.Tensor, rtol: float = RELATIVE, atol: float = ABSOLUTE
) -> AllCloseSummary:
    """Compare tensors of one shape: a small value may be as far off as a large one.

    Args:
        actual: What the device gave.
        expected: What it should be.
        rtol: How far off a value may be, as a share of the largest expected value.
        atol: What is added to that.
    """
    wanted = expected.detach().cpu().double()
    largest = wanted.abs().max().item() if wanted.numel() else 0.0
    apart = (actual.detach().cpu().double() - wanted).abs()
    error = apart.max().item() if apart.numel() else 0.0
    relative = error / largest if largest else float(error > 0)
    return AllCloseSummary(error <= atol + rtol * largest, relative, error)


def custom_allclose(
    expected: torch.Tensor, actual: torch.Tensor, atol: float = ABSOLUTE, rtol: float = RELATIVE
) -> tuple[bool, float]:
    """The same; returns whether they are near enough, and the largest difference as a share."""
    summary = neuron_allclose(actual, expected, rtol, atol)
    return summary.allclose, summary.max_rel_error


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
