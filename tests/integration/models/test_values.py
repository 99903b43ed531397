"""A training step on the device computes what it computes on the CPU, in float32 and in bfloat16."""

from __future__ import annotations

import pytest
import torch

from benchmarks.models import HALF_TOLERANCE, TOLERANCE
from benchmarks.zoo import CASES
from benchmarks.zoo.training import largest_difference, parameters_from, step_on_cpu, step_on_device

FAST = ("gnn", "llama")
LIMITS = {torch.float32: TOLERANCE, torch.bfloat16: HALF_TOLERANCE}


@pytest.mark.parametrize("dtype", list(LIMITS), ids=["float32", "bfloat16"])
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.name, marks=() if case.name in FAST else pytest.mark.slow) for case in CASES],
)
def test_a_step_gives_the_cpus_values_and_parameters(case, dtype):
    expected = step_on_cpu(case, dtype)
    found = step_on_device(case, compiled=False, dtype=dtype)
    assert largest_difference(expected.values, found.values) <= LIMITS[dtype]
    after = parameters_from(case, found.values, dtype)
    assert largest_difference(after, found.parameters) <= LIMITS[dtype]


def test_a_wrong_value_or_a_missing_one_is_a_difference():
    one = {"a": torch.ones(3)}
    assert largest_difference(one, {"a": torch.tensor([1.0, 1.0, 1.5])}) == pytest.approx(0.5)
    assert largest_difference(one, {}) == float("inf")
    assert largest_difference(one, {"a": torch.full((3,), float("nan"))}) == float("inf")


def test_rounding_of_what_cancels_out_is_no_difference_and_a_small_value_is_one():
    large = torch.tensor([1.0])
    noise = {"large": large, "cancels": torch.tensor([1e-11])}
    assert largest_difference(noise, {"large": large, "cancels": torch.tensor([-1e-11])}) < 1e-3
    small = {"large": large, "small": torch.tensor([1e-5])}
    assert largest_difference(small, {"large": large, "small": torch.tensor([1.1e-5])}) > 0.05
