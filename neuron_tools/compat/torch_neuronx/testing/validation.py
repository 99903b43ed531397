"""`torch_neuronx.testing.validation`: tensors are compared by the largest value that is expected."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from neuron_tools.compat.absent import Absent

RELATIVE, ABSOLUTE = 1e-2, 1e-5
DEFAULT_DIVERGENCE_DIFFERENCE_TOLERANCE = 0.001
logit_validation = Absent(
    "torch_neuronx.testing.validation.logit_validation",
    "compare each token's logits with neuron_allclose.",
)


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
