"""Numbers that change from step to step do not make another signature; those that matter do."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, strategies as st

from neuron_tools.frontends.torch_eager.canonical import canonical_number, signature_key

TENSOR = ("tensor", "float32", (4,), (1,), 0, True)


def key(*arguments):
    return signature_key("aten::op", (TENSOR, *arguments))


def test_a_step_size_does_not_matter():
    assert key(-0.005261859369383505) == key(-0.0036863961779119415)
    assert key(("list", (0.011, 0.012))) == key(("list", (0.013, 0.014)))


@pytest.mark.parametrize(
    ("first", "second"),
    [(0.0, 0.001), (1.0, 1.1), (2.0, 3.0), (0.001, -0.001), (math.inf, 1e9), (0.2, 0.8), (1, 1.0), (1, True)],
)
def test_what_changes_the_computation_matters(first, second):
    assert key(first) != key(second)


def test_not_a_number_equals_itself():
    assert key(math.nan) == key(math.nan)


@given(st.floats(allow_nan=False))
def test_a_canonical_number_stands_for_itself_and_keeps_sign_and_special_values(number):
    canonical = canonical_number(number)
    assert canonical_number(canonical) == canonical
    assert math.copysign(1, canonical) == math.copysign(1, number)
    assert (canonical in (0.0, 1.0, -1.0)) == (number in (0.0, 1.0, -1.0))


def test_the_default_type_matters():
    assert "float32" in repr(key(1))
    torch.set_default_dtype(torch.float64)
    try:
        assert "float64" in repr(key(1))
    finally:
        torch.set_default_dtype(torch.float32)
