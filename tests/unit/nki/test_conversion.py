"""Conversions by tables give what ml_dtypes gives, element by element."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from neuron_tools.nki.conversion import as_element

BYTE_FLOATS = (
    ml_dtypes.float8_e4m3, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float4_e2m1fn,
)  # fmt: skip
WIDER = (np.float32, np.float16, ml_dtypes.bfloat16)


def bits(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array's bits, with one pattern for every NaN."""
    raw: npt.NDArray[Any] = array.view(f"u{array.dtype.itemsize}").copy()
    raw[np.isnan(array.astype(np.float32))] = 0x7F
    return raw


def difficult() -> npt.NDArray[np.float32]:
    """Every exponent with mantissas around the bounds between two narrow floats, zeros and non-numbers."""
    mantissas = (np.arange(16, dtype=np.uint32) << 19)[:, None] + np.array([0, 1, 0x7FFFF], np.uint32)
    exponents = np.arange(256, dtype=np.uint32)[:, None] << 23
    positive = (exponents | mantissas.reshape(1, -1)).reshape(-1)
    return np.concatenate([positive, positive | np.uint32(1 << 31)]).view(np.float32)


@pytest.mark.filterwarnings("ignore:.*encountered in cast")
@pytest.mark.parametrize("element", BYTE_FLOATS)
@pytest.mark.parametrize("wider", WIDER)
def test_rounding_is_to_nearest_even(wider: Any, element: Any) -> None:
    values = difficult().astype(wider)
    np.testing.assert_array_equal(bits(as_element(values, np.dtype(element))), bits(values.astype(element)))


@pytest.mark.parametrize("element", BYTE_FLOATS)
@pytest.mark.parametrize("wider", WIDER)
def test_every_code_widens_exactly(wider: Any, element: Any) -> None:
    codes = np.arange(16 if element is ml_dtypes.float4_e2m1fn else 256, dtype=np.uint8).view(element)
    np.testing.assert_array_equal(bits(as_element(codes, np.dtype(wider))), bits(codes.astype(wider)))


def test_large_and_strided_arrays_keep_their_shape() -> None:
    values = np.linspace(-300, 300, 3 * 70_000, dtype=np.float32).reshape(3, 70_000)[:, ::2]
    narrow = as_element(values, np.dtype(ml_dtypes.float8_e4m3))
    np.testing.assert_array_equal(narrow.view(np.uint8), values.astype(ml_dtypes.float8_e4m3).view(np.uint8))
    np.testing.assert_array_equal(as_element(narrow[:, 1:], values.dtype), narrow[:, 1:].astype(np.float32))


def test_other_types_are_numpys_own() -> None:
    integers = np.arange(5)
    assert as_element(integers, integers.dtype) is integers
    assert as_element(integers, np.dtype(ml_dtypes.float8_e4m3)).dtype == ml_dtypes.float8_e4m3
