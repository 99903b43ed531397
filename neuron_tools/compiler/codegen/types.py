"""Element types: StableHLO spelling to the chip's, in HBM and on chip."""

from __future__ import annotations

from neuron_tools.records.program import DType

_DTYPES = {
    "f32": DType.F32,
    "f64": DType.F64,
    "bf16": DType.BF16,
    "f16": DType.F16,
    "tf32": DType.TF32,
    "i1": DType.BOOL,
    "pred": DType.BOOL,
    "i8": DType.I8,
    "i16": DType.I16,
    "i32": DType.I32,
    "i64": DType.I64,
    "ui8": DType.U8,
    "ui16": DType.U16,
    "ui32": DType.U32,
    "ui64": DType.I64,
    "si8": DType.I8,
    "si16": DType.I16,
    "si32": DType.I32,
    "si64": DType.I64,
    "i4": DType.I8,
    "ui4": DType.U8,
    "index": DType.I32,
}
_ON_CHIP = {DType.F64: DType.F32, DType.I64: DType.I32, DType.BOOL: DType.U8}


def memory_dtype(name: str) -> DType:
    """The element type a tensor has in HBM. Complex numbers count as F64 (two f32), 8-bit floats as FP8."""
    if name in _DTYPES:
        return _DTYPES[name]
    if name.startswith("f8"):
        return DType.FP8
    return DType.F64 if name.startswith("complex") else DType.F32


def chip_dtype(name: str) -> DType:
    """The element type on chip: the engines have no 64-bit types, DMA converts them on the way."""
    dtype = memory_dtype(name)
    return _ON_CHIP.get(dtype, dtype)
