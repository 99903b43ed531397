"""Samples of the cases of public suites."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "scripts"))

from public_samples import drawn, size, spread

SIZES = [2**power for power in range(10)]
NAMES = [f"test_{module}.py::test[bfloat16-b_{size}-4]" for size in SIZES for module in "ab"]


def test_a_spread_sample_has_a_small_and_a_middling_case_of_each_module() -> None:
    chosen = spread(NAMES, seed=3)
    assert [name.split("::")[0] for name in chosen] == ["test_a.py", "test_b.py"] * 2
    assert all("b_1-" in name for name in chosen[:2])
    assert all("b_16-" in name or "b_32-" in name for name in chosen[2:])


def test_a_module_of_one_case_is_chosen_once() -> None:
    assert spread(NAMES[:1], seed=3) == NAMES[:1]


def test_a_case_is_as_large_as_its_parameters_not_its_types() -> None:
    assert size("test_a.py::test[float32-2-8]") == pytest.approx(size("test_a.py::test[bfloat16-16]"))
    assert size("test_a.py::test_128[T-0]") == 0


def test_samples_repeat_with_their_seed_and_hold_all_where_none_is_asked_for() -> None:
    assert drawn(NAMES, 5, seed=2) == drawn(NAMES, 5, seed=2) != drawn(NAMES, 5, seed=3)
    assert drawn(NAMES, 0, seed=2) == NAMES
