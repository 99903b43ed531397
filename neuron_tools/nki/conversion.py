"""Conversion of elements between NumPy types: floats of one byte by tables, those of two by their bits.

NumPy and ml_dtypes take up to six times as long, one element after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Array
from neuron_tools.compiled import compiled

_SINGLE = np.dtype(np.float32)
_HALF, _BRAIN = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
_BYTE_FLOATS = frozenset(
    np.dtype(element)
    for element in (
        ml_dtypes.float8_e4m3, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float4_e2m1fn,
    )
)  # fmt: skip
_FLOATS = _BYTE_FLOATS | {_SINGLE, _HALF, _BRAIN}
_FEW = 4096
"""Elements up to which NumPy converts floats of two bytes as fast."""


def as_element(array: Array, element: np.dtype[Any]) -> Array:
    """The elements as another type, floats rounded to nearest even; the array itself where it has the type.

    Args:
        array: Numbers of any type.
        element: NumPy's type, or one of ml_dtypes.
    """
    held = array.dtype
    if held == element:
        return array
    if array.size > _FEW and (held, element) in _TWO_BYTES:
        convert, kind = _TWO_BYTES[held, element]
        return convert(_flat(array, kind)).view(element).reshape(array.shape)
    if held not in _FLOATS or element not in _FLOATS or not _BYTE_FLOATS & {held, element}:
        return array.astype(element)
    single = _single(array) if held in _BYTE_FLOATS else as_element(array, _SINGLE)
    return _rounded(single, element) if element in _BYTE_FLOATS else as_element(single, element)


def _flat(array: Array, kind: npt.DTypeLike) -> Array:
    """All elements in a row, seen as another type of their size."""
    return np.ascontiguousarray(array).reshape(-1).view(kind)


def _single(array: Array) -> Array:
    """Floats of a byte as fp32."""
    return _decoded(_values(array.dtype), _flat(array, np.uint8)).reshape(array.shape)


def _rounded(single: Array, element: np.dtype[Any]) -> Array:
    """fp32 rounded to floats of a byte."""
    return _encoded(_codes(element), _flat(single, np.uint32)).view(element).reshape(single.shape)


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


@compiled
def _widened(codes: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """Half floats as fp32: their numbers without a leading one count multiples of 2^-24.

    All others have exponent and mantissa in fp32's places, and the difference of the biases is added. No fp32
    number without a leading one takes part: a processor that was told to takes those for zeros.
    """
    found = np.empty(codes.size, np.float32)
    bits = found.view(np.uint32)
    for place in range(codes.size):
        number = np.uint32(codes[place])
        size = number & np.uint32(0x7FFF)
        found[place] = np.float32(size) * np.float32(2.0**-24)
        moved = (size << np.uint32(13)) + np.uint32(0x38000000)
        moved |= np.uint32(0x7F800000) if size >= np.uint32(0x7C00) else np.uint32(0)
        bits[place] = bits[place] if size < np.uint32(0x0400) else moved
        bits[place] |= (number & np.uint32(0x8000)) << np.uint32(16)
    return found


@compiled
def _halved(singles: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Codes of the half floats nearest to fp32 numbers, the even one of two.

    Below 2^-14 a code counts multiples of 2^-24. Above, what is rounded away counts by adding just less than
    half, or half where the last bit that stays is odd; a carry goes on into the exponent.
    """
    bits = singles.view(np.uint32)
    found = np.empty(singles.size, np.uint16)
    for place in range(singles.size):
        sign = bits[place] >> np.uint32(16) & np.uint32(0x8000)
        number = bits[place] & np.uint32(0x7FFFFFFF)
        is_tiny = number < np.uint32(0x38800000)
        scaled = abs(singles[place]) * np.float32(2.0**24) if is_tiny else np.float32(0)
        odd = number >> np.uint32(13) & np.uint32(1)
        code = (number - np.uint32(0x38000000) + np.uint32(0xFFF) + odd) >> np.uint32(13)
        code = np.uint32(np.rint(scaled)) if is_tiny else code
        outside = np.uint32(0x7E00) if number > np.uint32(0x7F800000) else np.uint32(0x7C00)
        code = outside if number >= np.uint32(0x47800000) else code
        found[place] = np.uint16(code | sign)
    return found


@compiled
def _lengthened(codes: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint32]:
    """bfloat16 as the bits of fp32, of which it is the upper half."""
    found = np.empty(codes.size, np.uint32)
    for place in range(codes.size):
        found[place] = np.uint32(codes[place]) << np.uint32(16)
    return found


@compiled
def _shortened(numbers: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint16]:
    """Codes of the bfloat16 nearest to fp32 numbers, the even one of two."""
    found = np.empty(numbers.size, np.uint16)
    for place in range(numbers.size):
        number = numbers[place]
        is_number = (number & np.uint32(0x7FFFFFFF)) <= np.uint32(0x7F800000)
        rest = np.uint32(0x7FFF) + (number >> np.uint32(16) & np.uint32(1))
        rounded = number + rest if is_number else number | np.uint32(0x400000)
        found[place] = np.uint16(rounded >> np.uint32(16))
    return found


_TWO_BYTES: dict[tuple[Any, Any], tuple[Callable[[Any], Array], npt.DTypeLike]] = {
    (_HALF, _SINGLE): (_widened, np.uint16), (_SINGLE, _HALF): (_halved, np.float32),
    (_BRAIN, _SINGLE): (_lengthened, np.uint16), (_SINGLE, _BRAIN): (_shortened, np.uint32),
}  # fmt: skip
"""How each pair of types is converted, and as what the numbers are given."""


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
