"""Conversion of elements between NumPy types: floats of one byte by tables, many times as fast."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Array
from neuron_tools.compiled import compiled

_SINGLE = np.dtype(np.float32)
_BYTE_FLOATS = frozenset(
    np.dtype(element)
    for element in (
        ml_dtypes.float8_e4m3, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float4_e2m1fn,
    )
)  # fmt: skip
_FLOATS = _BYTE_FLOATS | {_SINGLE, np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)}


def as_element(array: Array, element: np.dtype[Any]) -> Array:
    """The elements as another type, floats rounded to nearest even; the array itself where it has the type.

    Args:
        array: Numbers of any type.
        element: NumPy's type, or one of ml_dtypes.
    """
    if array.dtype == element:
        return array
    if array.dtype not in _FLOATS or element not in _FLOATS or not _BYTE_FLOATS & {array.dtype, element}:
        return array.astype(element)
    single = _single(array) if array.dtype in _BYTE_FLOATS else array.astype(_SINGLE, copy=False)
    return _rounded(single, element) if element in _BYTE_FLOATS else single.astype(element, copy=False)


def _single(array: Array) -> Array:
    """Floats of a byte as fp32."""
    codes = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return _decoded(_values(array.dtype), codes).reshape(array.shape)


def _rounded(single: Array, element: np.dtype[Any]) -> Array:
    """fp32 rounded to floats of a byte."""
    bits = np.ascontiguousarray(single).reshape(-1).view(np.uint32)
    return _encoded(_codes(element), bits).view(element).reshape(single.shape)


@compiled
def _decoded(values: npt.NDArray[np.float32], codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """The value of each code."""
    found = np.empty(codes.size, np.float32)
    for place in range(codes.size):
        found[place] = values[codes[place]]
    return found


@compiled
def _encoded(codes: npt.NDArray[np.uint8], bits: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]:
    """The code of each fp32 number.

    The upper half of a number decides, and whether anything but zeros follows: as the half's last bit, that
    keeps the number on its side of every bound between two results (rounding to odd).
    """
    found = np.empty(bits.size, np.uint8)
    for place in range(bits.size):
        number = bits[place]
        follows = np.uint32((number & np.uint32(0xFFFF)) != 0)
        found[place] = codes[number >> np.uint32(16) | follows]
    return found


@cache
def _values(element: np.dtype[Any]) -> Array:
    """fp32 values of the 256 codes of a type; unused bits of a code count for nothing."""
    return np.arange(256, dtype=np.uint8).view(element).astype(_SINGLE)


@cache
def _codes(element: np.dtype[Any]) -> Array:
    """The code of every upper half of an fp32 number."""
    with np.errstate(all="ignore"):
        singles = (np.arange(1 << 16, dtype=np.uint32) << 16).view(_SINGLE)
        return singles.astype(element).view(np.uint8)
