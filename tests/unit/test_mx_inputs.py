"""Random MX data of the public kernels' tests is what NumPy draws number by number."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scripts import mx_inputs


def raised_one_by_one(data: np.ndarray[Any, Any], power: float) -> None:
    for top in range(0, data.shape[0], 8):
        for left in range(0, data.shape[1], 4):
            row, column = np.random.randint(0, 7), np.random.randint(0, 3)
            sign = np.random.choice([-1, 1])
            mantissa = 1.0 + np.random.random() * 0.5
            data[top + row, left + column] = sign * mantissa * power


def test_numbers_and_what_follows_them_are_numpys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mx_inputs, "_AT_ONCE", 100)  # so that blocks are drawn in several times
    np.random.seed(5)
    expected = np.random.random((64, 400))
    raised_one_by_one(expected, 256.0)
    next_expected = np.random.random(4)
    np.random.seed(5)
    data = np.random.random((64, 400))
    mx_inputs.raise_blocks(data, 256.0)
    np.testing.assert_array_equal(data, expected)
    np.testing.assert_array_equal(np.random.random(4), next_expected)


def spread(scales: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Each scale at the elements of its block."""
    return scales.repeat(8, 0).repeat(4, 1)


def test_data_is_quantized_and_scaled_by_the_librarys_functions() -> None:
    library: Any = SimpleNamespace(
        get_mx_fp_max=lambda dtype: 448.0,
        get_mx_max_exp=lambda dtype: 8,
        NL_TO_DT_DTYPE={"x4": np.int16},
        static_cast=lambda values, dtype: values.astype(dtype),
        dequantize_mx_golden=lambda values, scales: (
            values * np.exp2(scales - 127.0).repeat(8, 0).repeat(4, 1)
        ),
    )
    values, quantized, scales = mx_inputs.stabilized(library, lambda *_: None)("x4", (16, 8))
    assert (quantized.dtype, scales.shape) == (np.dtype(np.int16), (2, 2))
    assert np.all(np.abs(quantized).reshape(2, 8, 2, 4).max((1, 3)) >= 256)
    assert np.all(np.abs(values) <= 1.0)


def test_what_has_no_blocks_is_left_to_the_library() -> None:
    made = mx_inputs.stabilized(SimpleNamespace(), lambda dtype, shape, span: (dtype, shape, span))  # type: ignore[arg-type]  # a module in all but its class
    assert made("x4", (8, 4), 0) == ("x4", (8, 4), 0)
