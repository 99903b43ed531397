"""Sums of products in the public kernels' references are those of NumPy, by matrix products."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from scripts import einsum_products


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Whether each call of NumPy's own function looked for products, as `optimize` says."""
    calls: list[Any] = []
    own = np.einsum

    def noted(*operands: Any, **options: Any) -> Any:
        calls.append(options.get("optimize"))
        return own(*operands, **options)

    monkeypatch.setattr(np, "einsum", noted)
    einsum_products.install()
    return calls


@pytest.mark.parametrize("subscripts", ["kiq,kjq->ij", "kiq,kjq->iqj", "kiq,kjq"])
def test_sums_of_two_arrays_are_the_same_by_products(subscripts: str, asked: list[Any]) -> None:
    random = np.random.default_rng(1)
    one, other = random.normal(size=(2, 16, 8, 4))
    expected = np.einsum(subscripts, one, other, optimize=False)
    np.testing.assert_allclose(np.einsum(subscripts, one, other), expected, rtol=1e-12)
    assert asked == [False, True]


def test_other_calls_are_left_as_they_are(asked: list[Any]) -> None:
    one = np.arange(6.0).reshape(2, 3)
    assert np.einsum("ij->", one) == 15
    np.testing.assert_array_equal(np.einsum(one, [0, 1], [1, 0]), one.T)
    assert asked == [None, None]


def test_types_that_numpy_refuses_stay_refused(asked: list[Any]) -> None:
    one = np.ones((2, 3), ml_dtypes.bfloat16)
    with pytest.raises(TypeError):
        np.einsum("ij,kj->ik", one, one)
    assert asked == [None]
