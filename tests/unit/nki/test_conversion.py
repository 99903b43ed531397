"""Conversions by tables and by bits give what ml_dtypes and NumPy give, element by element."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
import torch

from neuron_tools.nki.conversion import as_element

BYTE_FLOATS = (
    ml_dtypes.float8_e4m3, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float4_e2m1fn,
)  # fmt: skip
TWO_BYTES = (np.float16, ml_dtypes.bfloat16)
WIDER = (np.float32, *TWO_BYTES)


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


@pytest.mark.parametrize("element", TWO_BYTES)
def test_every_float_of_two_bytes_widens_exactly(element: Any) -> None:
    codes = np.arange(1 << 16, dtype=np.uint16).view(element)
    wide = as_element(codes, np.dtype(np.float32))
    np.testing.assert_array_equal(bits(wide), bits(codes.astype(np.float32)))


def test_half_floats_without_a_leading_one_survive_where_the_processor_takes_such_fp32_for_zeros() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    expected = halves.astype(np.float32)
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot")
    try:
        wide = as_element(halves, expected.dtype)
    finally:
        torch.set_flush_denormal(False)
    np.testing.assert_array_equal(bits(wide), bits(expected))


@pytest.mark.filterwarnings("ignore:.*encountered in cast")
@pytest.mark.parametrize("element", TWO_BYTES)
def test_two_bytes_hold_the_nearest_float_or_the_even_one(element: Any) -> None:
    ends = np.array([0, 1, 0xFFF, 0x1000, 0x1001, 0x2FFF, 0x3000, 0x7FFF, 0x8000, 0x8001, 0xF000], np.uint32)
    values = (np.arange(1 << 16, dtype=np.uint32)[:, None] << 16 | ends).view(np.float32)
    np.testing.assert_array_equal(bits(as_element(values, np.dtype(element))), bits(values.astype(element)))


@pytest.mark.parametrize("element", TWO_BYTES)
@pytest.mark.parametrize("columns", [3, 3_000])
def test_floats_of_any_layout_keep_their_shape(element: Any, columns: int) -> None:
    values = np.linspace(-9, 9, 8 * columns, dtype=np.float32).reshape(8, columns)[::2, ::-1].T
    narrow = as_element(values, np.dtype(element))
    np.testing.assert_array_equal(narrow, values.astype(element))
    np.testing.assert_array_equal(as_element(narrow[1:], values.dtype), narrow[1:].astype(np.float32))


def test_large_and_strided_arrays_keep_their_shape() -> None:
    values = np.linspace(-300, 300, 3 * 70_000, dtype=np.float32).reshape(3, 70_000)[:, ::2]
    narrow = as_element(values, np.dtype(ml_dtypes.float8_e4m3))
    np.testing.assert_array_equal(narrow.view(np.uint8), values.astype(ml_dtypes.float8_e4m3).view(np.uint8))
    np.testing.assert_array_equal(as_element(narrow[:, 1:], values.dtype), narrow[:, 1:].astype(np.float32))


def test_other_types_are_numpys_own() -> None:
    integers = np.arange(5)
    assert as_element(integers, integers.dtype) is integers
    assert as_element(integers, np.dtype(ml_dtypes.float8_e4m3)).dtype == ml_dtypes.float8_e4m3
