"""Conversion of elements between NumPy types: floats of one byte by tables, several times as fast."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from neuron_tools.arrays import Array

_SINGLE = np.dtype(np.float32)
_BYTE_FLOATS = frozenset(
    np.dtype(element)
    for element in (
        ml_dtypes.float8_e4m3, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float4_e2m1fn,
    )
)  # fmt: skip
_FLOATS = _BYTE_FLOATS | {_SINGLE, np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)}
_BLOCK = 1 << 16
"""Elements that are rounded at once: what lies between two steps stays in the processor's cache."""


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
    single = _values(array.dtype)[array.view(np.uint8)] if array.dtype in _BYTE_FLOATS else array
    single = single.astype(_SINGLE, copy=False)
    return _rounded(single, element) if element in _BYTE_FLOATS else single.astype(element, copy=False)


def _rounded(single: Array, element: np.dtype[Any]) -> Array:
    """fp32 rounded to floats of a byte.

    The upper half of a number decides, and whether anything but zeros follows: as the half's last bit, that
    keeps the number on its side of every bound between two results (rounding to odd).
    """
    flat = np.ascontiguousarray(single).reshape(-1)
    codes, table = np.empty(flat.size, np.uint8), _codes(element)
    for start in range(0, flat.size, _BLOCK):
        halves = flat[start : start + _BLOCK].view(np.uint16).reshape(-1, 2)
        upper = halves[:, 1] | (halves[:, 0] != 0)
        np.take(table, upper, out=codes[start : start + _BLOCK], mode="clip")
    return codes.view(element).reshape(single.shape)


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
