"""A reference that a public test computes again from the same inputs is computed once."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from scripts import repeated_references


class Counted:
    """A reference that counts its computations."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, inputs: dict[str, Any], cores: int) -> dict[str, Any]:
        self.calls += 1
        return {"out": inputs["x"].astype(np.float32) * cores}


@pytest.fixture
def counted() -> Counted:
    return Counted()


def test_a_second_call_with_equal_inputs_computes_nothing(counted: Counted) -> None:
    compute = repeated_references.once_again(counted)
    first = compute({"x": np.arange(6)}, 2)
    first.pop("out")
    np.testing.assert_array_equal(compute({"x": np.arange(6)}, 2)["out"], 2 * np.arange(6))
    assert counted.calls == 1


def test_results_are_forgotten_with_their_second_use(counted: Counted) -> None:
    compute = repeated_references.once_again(counted)
    for _ in range(3):
        compute({"x": np.arange(6)}, 2)
    assert counted.calls == 2


def test_a_changed_element_is_computed_anew(counted: Counted) -> None:
    compute = repeated_references.once_again(counted)
    inputs = {"x": np.ones(4, ml_dtypes.bfloat16)}
    compute(inputs, 1)
    inputs["x"][3] = 2
    assert compute(inputs, 1)["out"].tolist() == [1, 1, 1, 2]


@pytest.mark.parametrize(
    "other", [np.arange(6).reshape(2, 3), np.arange(6, dtype=np.int32), np.arange(12)[::2], [0, 1], None]
)
def test_digests_tell_values_apart(other: object) -> None:
    assert repeated_references.digest({"x": np.arange(6)}) != repeated_references.digest({"x": other})


def test_only_the_functions_of_a_module_that_repeat_are_replaced(counted: Counted) -> None:
    repeating, other = ModuleType("repeating"), ModuleType("other")
    repeating._golden_ref_via_torch = counted  # type: ignore[attr-defined]
    repeated_references.install([repeating, other])
    for _ in range(2):
        repeating._golden_ref_via_torch({"x": np.ones(2)}, 1)
    assert counted.calls == 1
    assert not hasattr(other, "_golden_ref_via_torch")
