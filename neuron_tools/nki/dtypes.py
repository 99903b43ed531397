"""Element types as kernels name them: strings that compare equal to NumPy's and PyTorch's types.

`nl.float32` is the string "float32" with the storage type attached, so that `x.dtype == np.float32`,
`np.dtype(nl.bfloat16)`, `str(nl.float8_e4m3)` and dictionaries keyed by type all work.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from neuron_tools.records.program import DType as ChipType


class DType(str):
    """An element type.

    Attributes:
        dtype: NumPy type that one element is stored as (packed types: uint32).
        itemsize: Bytes of one element.
        chip: The type as Programs name it.
        element: NumPy type of one packed value; the storage type where nothing is packed.
        packed: Values in one element: 4 for the MX types, else 1.
        is_narrow: Whether it is a float that `NKI_PRECISE_FP=0` keeps as float32: bfloat16 and float8.
    """

    dtype: np.dtype[Any]
    itemsize: int
    chip: ChipType
    element: np.dtype[Any]
    packed: int
    is_float: bool
    is_integer: bool
    is_narrow: bool

    def __new__(cls, name: str) -> DType:
        """The type of this name; `DType("float32") is float32`."""
        return as_dtype(name)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, DType):
            return str.__eq__(self, other)
        found = find_dtype(other)
        return found is self

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    @property
    def name(self) -> str:
        """The name, as NumPy types have it."""
        return str(self)

    @property
    def is_32bit_integer(self) -> bool:
        """Whether it is int32 or uint32, which the engines compute natively on GpSimd."""
        return self.is_integer and self.itemsize == 4


def _make(name: str, storage: Any, chip: ChipType, element: Any = None, packed: int = 1) -> DType:
    made = str.__new__(DType, name)
    made.dtype = np.dtype(storage)
    made.itemsize = made.dtype.itemsize
    made.chip = chip
    made.element = np.dtype(element) if element is not None else made.dtype
    made.packed = packed
    made.is_float = name.startswith(("float", "bfloat", "tfloat"))
    made.is_integer = name.startswith(("int", "uint"))
    made.is_narrow = packed == 1 and name.startswith(("bfloat", "float8_e4", "float8_e5"))
    return made


bool_ = _make("bool", np.bool_, ChipType.BOOL)
int8 = _make("int8", np.int8, ChipType.I8)
int16 = _make("int16", np.int16, ChipType.I16)
int32 = _make("int32", np.int32, ChipType.I32)
int64 = _make("int64", np.int64, ChipType.I64)
uint8 = _make("uint8", np.uint8, ChipType.U8)
uint16 = _make("uint16", np.uint16, ChipType.U16)
uint32 = _make("uint32", np.uint32, ChipType.U32)
float16 = _make("float16", np.float16, ChipType.F16)
float32 = _make("float32", np.float32, ChipType.F32)
float64 = _make("float64", np.float64, ChipType.F64)
bfloat16 = _make("bfloat16", ml_dtypes.bfloat16, ChipType.BF16)
tfloat32 = _make("tfloat32", np.float32, ChipType.TF32)
float8_e4m3 = _make("float8_e4m3", ml_dtypes.float8_e4m3, ChipType.FP8)
float8_e5m2 = _make("float8_e5m2", ml_dtypes.float8_e5m2, ChipType.FP8)
float8_e4m3fn = _make("float8_e4m3fn", ml_dtypes.float8_e4m3fn, ChipType.FP8)
float8_e8m0fnu = _make("float8_e8m0fnu", ml_dtypes.float8_e8m0fnu, ChipType.U8)
float8_e4m3fn_x4 = _make("float8_e4m3fn_x4", np.uint32, ChipType.FP8, ml_dtypes.float8_e4m3fn, 4)
float8_e5m2_x4 = _make("float8_e5m2_x4", np.uint32, ChipType.FP8, ml_dtypes.float8_e5m2, 4)
float4_e2m1fn_x4 = _make("float4_e2m1fn_x4", np.uint16, ChipType.FP8, ml_dtypes.float4_e2m1fn, 4)

ALL = (
    bool_, int8, int16, int32, int64, uint8, uint16, uint32, float16, float32, float64, bfloat16, tfloat32,
    float8_e4m3, float8_e5m2, float8_e4m3fn, float8_e8m0fnu, float8_e4m3fn_x4, float8_e5m2_x4,
    float4_e2m1fn_x4,
)  # fmt: skip

_BY_NAME: dict[str, DType] = {str(dtype): dtype for dtype in ALL}
_BY_NAME.update({
    "bool_": bool_, "fp32": float32, "fp16": float16, "bf16": bfloat16, "f32": float32, "f16": float16,
    "float8e4": float8_e4m3, "float8e5": float8_e5m2, "fp8e4": float8_e4m3, "fp8e5": float8_e5m2,
    "|V4": tfloat32, "void32": tfloat32, "float": float32, "int": int32, "half": float16,
})  # fmt: skip
_CACHE: dict[Any, DType | None] = {}


def find_dtype(spelling: object) -> DType | None:
    """The type that a NumPy, PyTorch, JAX or Python type or a name stands for; None where it is none."""
    if isinstance(spelling, DType):
        return spelling
    try:
        if spelling in _CACHE:
            return _CACHE[spelling]
    except TypeError:  # not hashable
        return None
    found = _CACHE[spelling] = _find(spelling)
    return found


def _find(spelling: object) -> DType | None:
    if spelling is bool:
        return bool_
    if spelling is int:
        return int32
    if spelling is float:
        return float32
    if isinstance(spelling, str):
        return _BY_NAME.get(str(spelling).removeprefix("torch."))
    text = str(spelling)
    if text.startswith("torch."):
        return _BY_NAME.get(text.removeprefix("torch."))
    try:
        held = np.dtype(spelling)  # type: ignore[call-overload]  # any spelling; NumPy refuses others
    except TypeError:
        return None
    return _BY_NAME.get(held.name)


def as_dtype(spelling: object) -> DType:
    """The type that `spelling` stands for.

    Raises:
        TypeError: NKI has no such type.
    """
    found = find_dtype(spelling)
    if found is None:
        raise TypeError(f"NKI has no element type {spelling!r}; it has {', '.join(str(t) for t in ALL)}.")
    return found


def sizeinbytes(spelling: object) -> int:
    """Bytes of one element.

    Raises:
        TypeError: NKI has no such type.
    """
    return as_dtype(spelling).itemsize


def promote(first: DType, second: DType) -> DType:
    """Type of the result of two operands of these types: the wider, floats before integers."""
    if first is second:
        return first
    if first.is_float != second.is_float:
        return first if first.is_float else second
    if first.itemsize != second.itemsize:
        return first if first.itemsize > second.itemsize else second
    return float32 if first.is_float else first
