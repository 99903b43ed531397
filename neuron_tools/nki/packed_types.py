"""Element types that NumPy gets from us, as libraries in C register theirs: the packed MX types.

Code asks for a packed type by its name (`str(array.dtype) == "float8_e4m3fn_x4"`), which no record type
has, so that they are registered through NumPy's C interface (NumPy C-API, "User-defined data types"). An
element is stored, copied and compared as the unsigned integer of its size; NumPy converts it to no other.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

_SINCE_2 = np.lib.NumpyVersion(np.__version__) >= "2.0.0"
_core: Any = np._core if _SINCE_2 else np.core  # type: ignore[attr-defined]  # one of them has the tables
_DESCR_FROM_TYPE, _REGISTER_DATA_TYPE, _GET_FUNCTIONS = 45, 192, 365
_REGISTER_LOOP = 2
"""Places of functions in NumPy's tables: the same in every release since 1.7, the third since 2.0."""
_CAST_FUNCTIONS, _FUNCTIONS = 21, 25
_GETITEM, _SETITEM, _COPYSWAPN, _COPYSWAP, _COMPARE, _NONZERO = 0, 1, 2, 3, 4, 9
_ALWAYS_BY_FUNCTION = 0x20 | 0x40
"""NPY_USE_GETITEM and NPY_USE_SETITEM: single elements are Python's integers."""
_KIND = b"V"
_COMPARISONS = (np.equal, np.not_equal)

_table: Callable[[object, bytes | None], int] = ctypes.PYFUNCTYPE(
    ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p
)(("PyCapsule_GetPointer", ctypes.pythonapi))
_kept: list[Any] = []
"""What NumPy holds pointers to."""


class _Functions(ctypes.Structure):
    """`PyArray_ArrFuncs`: what NumPy does with an element of a type; ends after the last one used here."""

    _fields_ = [("cast", ctypes.c_void_p * _CAST_FUNCTIONS), ("function", ctypes.c_void_p * _FUNCTIONS)]


class _Prototype(ctypes.Structure):
    """`PyArray_DescrProto`: a type that is to be registered."""

    _fields_ = [
        ("references", ctypes.c_ssize_t), ("class_", ctypes.py_object), ("scalar", ctypes.py_object),
        ("kind", ctypes.c_char), ("letter", ctypes.c_char),
        ("order", ctypes.c_char), ("flags", ctypes.c_char),
        ("number", ctypes.c_int), ("size", ctypes.c_int), ("alignment", ctypes.c_int),
        ("subarray", ctypes.c_void_p), ("fields", ctypes.c_void_p), ("names", ctypes.c_void_p),
        ("functions", ctypes.POINTER(_Functions)), ("metadata", ctypes.c_void_p),
        ("c_metadata", ctypes.c_void_p), ("hash", ctypes.c_ssize_t),
    ]  # fmt: skip


class _Ufunc(ctypes.Structure):
    """The head of `PyUFuncObject`."""

    _fields_ = [
        ("references", ctypes.c_ssize_t), ("class_", ctypes.py_object), ("inputs", ctypes.c_int),
        ("outputs", ctypes.c_int), ("arguments", ctypes.c_int), ("identity", ctypes.c_int),
        ("loops", ctypes.POINTER(ctypes.c_void_p)), ("data", ctypes.POINTER(ctypes.c_void_p)),
    ]  # fmt: skip


def registered(scalar: type[np.generic], storage: np.dtype[Any]) -> np.dtype[Any]:
    """A new NumPy type.

    Args:
        scalar: Class of its elements, found in its module under its name, which becomes the type's.
        storage: Unsigned integer type that its elements are stored as.
    """
    functions = _Functions()
    known = _functions_of(storage)
    for place in (_GETITEM, _SETITEM, _COPYSWAPN, _COPYSWAP, _COMPARE, _NONZERO):
        functions.function[place] = known.function[place]
    prototype = _Prototype(
        references=1, class_=np.dtype, scalar=scalar, kind=_KIND, letter=_KIND, order=b"=",
        flags=bytes([_ALWAYS_BY_FUNCTION]), size=storage.itemsize, alignment=storage.alignment,
        functions=ctypes.pointer(functions), hash=-1,
    )  # fmt: skip
    _kept.extend((scalar, functions, prototype))
    number = _call(_REGISTER_DATA_TYPE, ctypes.c_int, ctypes.byref(prototype))
    for comparison in _COMPARISONS:
        _compare_as(comparison, number, storage)
    made: np.dtype[Any] = _call(_DESCR_FROM_TYPE, ctypes.py_object, number)
    return made


def _functions_of(dtype: np.dtype[Any]) -> _Functions:
    """What NumPy does with elements of a type of its own."""
    if _SINCE_2:
        pointer = _call(_GET_FUNCTIONS, ctypes.POINTER(_Functions), ctypes.py_object(dtype))
    else:
        pointer = _Prototype.from_address(id(dtype)).functions
    found: _Functions = pointer.contents
    return found


def _call(place: int, result: Any, *arguments: Any) -> Any:
    """Call a function of NumPy's table of functions on arrays."""
    address = _entries(_core.multiarray._ARRAY_API)[place]
    return ctypes.PYFUNCTYPE(result, *map(_argument_type, arguments))(address)(*arguments)


def _argument_type(argument: Any) -> Any:
    return ctypes.c_int if isinstance(argument, int) else ctypes.c_void_p if not isinstance(
        argument, ctypes.py_object) else ctypes.py_object  # fmt: skip


def _entries(capsule: object) -> Any:
    return ctypes.cast(_table(capsule, None), ctypes.POINTER(ctypes.c_void_p))


def _compare_as(comparison: np.ufunc, number: int, storage: np.dtype[Any]) -> None:
    """Let a ufunc compare elements of a registered type as it compares those of its storage."""
    place = comparison.types.index(f"{storage.char * 2}->?")
    head = _Ufunc.from_address(id(comparison))
    address = _entries(_core.umath._UFUNC_API)[_REGISTER_LOOP]
    kinds = (ctypes.c_int * 3)(number, number, np.dtype(np.bool_).num)
    register = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_int, ctypes.c_void_p,
                                 ctypes.c_void_p, ctypes.c_void_p)(address)  # fmt: skip
    register(comparison, number, head.loops[place], kinds, head.data[place])
