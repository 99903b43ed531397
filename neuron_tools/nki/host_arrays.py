"""NumPy arrays of NKI's element types on the host: the packed MX types, and conversions between all of them.

Four values of an MX type make one element of its packed type, which is a NumPy type of its own: an array
of one can be seen as bytes or integers (`view`), but not converted by NumPy itself, which would take the
bits for a number.
"""

from __future__ import annotations

from typing import Any, cast

import ml_dtypes
import numpy as np

from neuron_tools.arrays import Array
from neuron_tools.nki import microscaling
from neuron_tools.nki.conversion import as_element
from neuron_tools.nki.dtypes import DType, as_dtype, find_dtype
from neuron_tools.nki.packed_types import registered


def _element(name: str) -> type[np.generic]:
    """The class of a packed type's elements; NumPy calls the type as the class."""
    made = type(name, (np.generic,), {"__module__": __name__, "__doc__": "Four neighbours of an MX type."})
    return cast("type[np.generic]", made)


float8_e4m3fn_x4 = _element("float8_e4m3fn_x4")
float8_e5m2_x4 = _element("float8_e5m2_x4")
float4_e2m1fn_x4 = _element("float4_e2m1fn_x4")

PACKED = {
    element.__name__: registered(element, as_dtype(element.__name__).dtype)
    for element in (float8_e4m3fn_x4, float8_e5m2_x4, float4_e2m1fn_x4)
}
"""NumPy types of the packed types, by name."""
np.sctypeDict.update(PACKED)  # type: ignore[arg-type]  # NumPy takes whatever it can read as a type


def host_dtype(dtype: DType) -> np.dtype[Any]:
    """The NumPy type of arrays of an element type."""
    return PACKED.get(str(dtype), dtype.dtype)


def unpack(array: Array, dtype: DType) -> Array:
    """Values of a packed array as fp32; the last dimension is four times as long.

    Args:
        array: (..., F) array of any type of the packed type's size.
        dtype: The packed type.
    """
    values = microscaling.unpacked(np.atleast_1d(array), dtype)
    return values.reshape(*values.shape[:-2], values.shape[-2] * dtype.packed)


def pack(values: Array, dtype: DType) -> Array:
    """Values rounded to an MX type and packed; the last dimension becomes a quarter.

    Args:
        values: (..., 4 F) array.
        dtype: The packed type.

    Raises:
        ValueError: The last dimension is no multiple of four.
    """
    if values.ndim == 0 or values.shape[-1] % dtype.packed:
        raise ValueError(
            f"{dtype} packs {dtype.packed} neighbours: the last dimension of {values.shape} must be a "
            f"multiple of {dtype.packed}."
        )
    elements = as_element(np.ascontiguousarray(values, np.float32), dtype.element)
    return microscaling.packed(elements, dtype).view(host_dtype(dtype))


def static_cast(value: Any, dtype: Any) -> Array:
    """An array converted to an element type, as `neuron_dtypes.static_cast` does.

    Args:
        value: Array or number.
        dtype: NKI's, NumPy's or a name; to and from a packed type four values are packed and unpacked.

    Raises:
        TypeError: NKI has no such type.
    """
    array = np.asarray(value)
    wanted, held = as_dtype(dtype), find_dtype(array.dtype)
    if held is wanted:
        return array
    if held is not None and held.packed > 1:
        array = unpack(array, held)
    return pack(array, wanted) if wanted.packed > 1 else as_element(array, wanted.dtype)


def allclose(first: Any, second: Any, rtol: float = 1e-5, atol: float = 1e-8, **_options: Any) -> bool:
    """Whether two arrays of any element types agree as `numpy.allclose` has it, compared as fp32.

    Args:
        first, second: Arrays of the same or of broadcastable shapes.
        rtol: Tolerated share of the second array's element.
        atol: Tolerated difference besides.
    """
    wide = [np.asarray(static_cast(array, "float32"), np.float64) for array in (first, second)]
    return bool(np.allclose(wide[0], wide[1], rtol=rtol, atol=atol, equal_nan=True))


def is_float_type(dtype: object) -> bool:
    """Whether a type, NKI's or NumPy's, holds floats; the packed ones do."""
    found = find_dtype(dtype)
    return found.is_float if found is not None else np.dtype(str(dtype)).kind == "f"


def finfo(dtype: object) -> Any:
    """Limits of a float type, as `numpy.finfo` has them.

    Raises:
        TypeError: NKI has no such type.
    """
    limits: Any = ml_dtypes.finfo
    return limits(as_dtype(dtype).element)
