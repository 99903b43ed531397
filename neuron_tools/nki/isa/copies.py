"""Copies of tiles on chip, also under a predicate, and constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_tools.arrays import Array
from neuron_tools.backend.kinds import Kind
from neuron_tools.nki.isa.enums import engine as engines
from neuron_tools.nki.isa.issue import (
    open_engines,
    refuse,
    require_predicate,
    require_same_size,
    shaped,
)
from neuron_tools.nki.isa.prologue import instruction
from neuron_tools.nki.isa.table import Call, Derived, Instruction, Operand
from neuron_tools.nki.registers import VirtualRegister
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import cast, exact, single, write
from neuron_tools.records.program import Engine, Memory, Opcode


def _copying(call: Call) -> Kind:
    dst, src = call.form("dst"), call.form("src")
    return call.kind(
        engines=open_engines(call.given["engine"], dst, src), straight=dst.dense and dst.lies_as(src)
    )


@instruction(Instruction(
    "tensor_copy", Opcode.TENSOR_COPY, (Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD),
    (Operand("dst", written=True, aligned=True), Operand("src", aligned=True)),
    same_size=(("dst", "src"),), key=("engine",), build=_copying,
))  # fmt: skip
def tensor_copy(
    dst: NkiTensor,
    src: NkiTensor,
    engine: engines = engines.unknown,
    name: str | None = None,
    dtype: Any = None,
) -> None:
    """dst = src, between SBUF and PSUM; bit for bit where the types are equal, through fp32 otherwise.

    Args:
        dst: (P, ...) tile.
        src: Tile of as many elements.
        engine: Vector, Scalar, GpSimd (no PSUM), or unknown.
        name: The profile's name for the call.
        dtype: Some kernels name a type here; that of `dst` holds.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    write(dst, converted(src, dst))


def converted(src: NkiTensor, dst: NkiTensor) -> Array:
    """The source's elements as the destination stores them."""
    if src.dtype is dst.dtype:
        return exact(src)
    if src.dtype.is_integer and dst.dtype.is_integer:
        return cast(exact(src).astype(np.float64), dst.dtype)
    return cast(single(src), dst.dtype)


def _check_predicated(call: Call) -> None:
    """Refuse a predicate of floats, and a source that is neither one element nor a whole tile."""
    src = call.forms["src"]
    require_predicate(call.record.name, call.form("predicate"))
    if src is not None and src.dtype is not call.form("dst").dtype and not call.trace.older_dialect:
        raise refuse(
            f"{call.record.name} copies elements as they are, but src is {src.dtype} and dst "
            f"{call.form('dst').dtype}; convert one first (nisa.tensor_copy)"
        )
    if src is not None and src.elements != 1:
        require_same_size(call.record.name, call.form("dst"), src, "dst and src")


@instruction(Instruction(
    "tensor_copy_predicated", Opcode.TENSOR_COPY_PREDICATED, (Engine.VECTOR,),
    (Operand("dst", written=True), Operand("src", optional=True),
     Operand("predicate", types=("uint8", "uint16", "uint32"))),
    same_size=(("dst", "predicate"),), rule=_check_predicated,
))  # fmt: skip
def tensor_copy_predicated(
    dst: NkiTensor, src: Any, predicate: NkiTensor, reverse_pred: bool = False, name: str | None = None
) -> None:
    """dst = src where the predicate is not zero; elsewhere `dst` stays.

    Args:
        dst: (P, ...) tile.
        src: Tile of as many elements, or a number.
        predicate: Integer tile of as many elements; not in PSUM together with `src`.
        reverse_pred: Copy where it is zero.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    shape = dst.shape
    chosen = shaped(exact(predicate), shape) != 0
    if reverse_pred:
        chosen = ~chosen
    tile = isinstance(src, NkiTensor)
    new = shaped(converted(src, dst), shape) if tile else cast(np.float32(src), dst.dtype)
    write(dst, np.where(chosen, new, dst.array))


_NUMBERS = (int, float, np.generic, VirtualRegister)


def _constant(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float, np.number)) else None


def _check_constant(call: Call) -> None:
    """Refuse a number that no bits of the tile's integers stand for; NumPy would keep its lowest ones."""
    dtype, value = call.form("dst").dtype, call.given["constant"]
    if value is None or not dtype.is_integer:
        return
    held, signed = np.iinfo(dtype.dtype), np.iinfo(f"int{8 * dtype.itemsize}")
    if value != np.floor(value) or not signed.min <= value <= held.max:
        raise refuse(
            f"memset of {value:g} into {dtype}, which holds whole numbers from {held.min} to "
            f"{held.max}; give such a number, or a tile of another type"
        )


def _filling(call: Call) -> Kind:
    left_open = call.given["engine"].chosen is None and call.form("dst").memory is Memory.SBUF
    return call.kind(engines=(Engine.GPSIMD,) if left_open else (), constant=call.given["constant"])


@instruction(Instruction(
    "memset", Opcode.MEMSET, (Engine.VECTOR, Engine.GPSIMD), (Operand("dst", written=True),),
    key=("engine", "constant"), derived=(Derived("constant", ("value",), _constant),),
    rule=_check_constant, build=_filling,
))  # fmt: skip
def memset(dst: NkiTensor, value: Any, engine: engines = engines.unknown, name: str | None = None) -> None:
    """Fill a tile with a constant.

    Args:
        dst: (P, ...) tile.
        value: The constant.
        engine: Vector, GpSimd, or unknown.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    if not isinstance(value, _NUMBERS) and getattr(value, "shape", None) != ():
        raise refuse(
            f"memset fills with one number, got {type(value).__name__}; copy a tile with nisa.tensor_copy"
        )
    target = dst.array
    if dst.gather is None:
        number = np.asarray(value)
        target[...] = number if number.dtype.kind in "iub" else cast(number.astype(np.float32), dst.dtype)
    else:
        write(dst, np.float32(value))
