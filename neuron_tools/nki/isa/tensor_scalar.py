"""Elementwise instructions with one number per partition."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_tools.arrays import Array
from neuron_tools.nki.isa.addresses import address_values, are_integers, makes_addresses
from neuron_tools.nki.isa.enums import engine as engines
from neuron_tools.nki.isa.issue import (
    form_of,
    open_engines,
    refuse,
    require_arithmetic,
    require_types,
    shaped,
)
from neuron_tools.nki.isa.prologue import instruction
from neuron_tools.nki.isa.table import Call, Derived, Instruction, Operand
from neuron_tools.nki.operators import Operator, find_operator
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import column, exact, fits_out, single, write
from neuron_tools.records.program import Engine, Opcode

_AFFINE_GENERATION = 3
_AFFINE = ("add", "subtract", "multiply")
"""Operators that the Scalar engine can apply as the scale or the bias of an activation."""
Scalar = Any
"""A number, a register, or a tile with one element per partition."""


def apply(op: Operator, values: Array, operand: Any, reverse: bool) -> Array:
    """values op operand, or the other way round; a unary operator ignores the operand."""
    if op.arity == 1:
        return op.function(values)
    return op.function(operand, values) if reverse else op.function(values, operand)


def _check_operators(call: Call) -> None:
    """Refuse an arithmetic operator together with a bitwise one."""
    first, second = find_operator(call.given["op0"]), call.given["op1"]
    for op in (first, *([] if second is None else [find_operator(second)])):
        if op.is_activation:
            raise refuse(
                f"{call.record.name} has no operator {op.name}, which the Scalar engine computes; call "
                f"nisa.activation(op=nl.{op.name})"
            )
    if second is not None and find_operator(second).bitwise != first.bitwise:
        raise refuse(
            f"{call.record.name} takes two arithmetic or two bitwise operators, got {first.name} and "
            f"{find_operator(second).name}"
        )


def _check_scalar(call: Call) -> None:
    """Refuse bit patterns except on the Vector engine, and operators that `tensor_scalar` does not have."""
    _check_operators(call)
    engine = call.given["engine"].chosen
    if find_operator(call.given["op0"]).bitwise and engine not in (None, Engine.VECTOR):
        raise refuse(
            f"tensor_scalar works on bit patterns on the Vector engine only, not on {engine.title}; leave "
            "the engine out"
        )
    if not call.trace.older_dialect:
        _check_affine(call, engine)
        if not find_operator(call.given["op0"]).bitwise and not _is_address(call):
            require_types("tensor_scalar", ("float32",), operand0=call.forms["operand0"],
                          operand1=call.forms["operand1"])  # fmt: skip


def _is_address(call: Call) -> bool:
    """Whether GpSimd computes 32-bit addresses."""
    given, forms = call.given, call.forms
    return given["integers"] and makes_addresses(
        call.form("dst"), call.form("data"), (forms["operand0"], forms["operand1"]),
        (given["op0"], given["op1"]), given["engine"],
    )  # fmt: skip


def _engine_of(call: Call) -> Engine:
    """GpSimd for addresses; else what the kernel names, or Vector."""
    return Engine.GPSIMD if _is_address(call) else call.given["engine"].chosen or Engine.VECTOR


def _check_affine(call: Call, engine: Engine | None) -> None:
    """Refuse on Trn2's Scalar engine what is no product, sum, or product and sum (NKI documentation)."""
    operators = tuple(
        find_operator(op).name for op in (call.given["op0"], call.given["op1"]) if op is not None
    )
    limited = engine is Engine.SCALAR and call.trace.core.generation == _AFFINE_GENERATION
    if limited and operators not in (("multiply", "add"), ("multiply",), ("add",)):
        raise refuse(
            "tensor_scalar on the Scalar engine of Trn2 multiplies, adds, or multiplies and then adds, but "
            f"got {' and '.join(operators)}; leave the engine out"
        )


def _open_to(call: Call) -> tuple[Engine, ...]:
    """The engines left open: what the Scalar engine can do as the scale and bias of an activation."""
    operators = [call.given[name] for name in ("op0", "op1") if call.given[name] is not None]
    affine = all(find_operator(op).name in _AFFINE for op in operators)
    return open_engines(call.given["engine"], call.form("dst"), call.form("data")) if affine else ()


@instruction(Instruction(
    "tensor_scalar", Opcode.TENSOR_SCALAR, (Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD),
    (Operand("dst", written=True, aligned=True), Operand("data", aligned=True),
     Operand("operand0", optional=True, streamed=False, column="data"),
     Operand("operand1", optional=True, streamed=False, column="data")),
    same_size=(("dst", "data"),), operator="op0", key=("op0", "op1", "engine", "integers"),
    derived=(Derived("integers", ("operand0", "operand1", "reverse0", "reverse1"), are_integers),),
    rule=_check_scalar, select=_engine_of, build=lambda call: call.kind(engines=_open_to(call)),
))  # fmt: skip
def tensor_scalar(
    dst: NkiTensor,
    data: NkiTensor,
    op0: Any,
    operand0: Scalar,
    reverse0: bool = False,
    op1: Any = None,
    operand1: Scalar = None,
    reverse1: bool = False,
    engine: engines = engines.unknown,
    name: str | None = None,
) -> None:
    """dst = (data op0 operand0) op1 operand1, the operands broadcast along the free dimensions.

    In fp32; addresses (int32 times integers, plus integers; whether uint32 less a start lies below a size)
    exactly, on GpSimd.

    Args:
        dst: (P, ...) result tile.
        data: Tile of as many elements, SBUF or PSUM.
        op0: First operator.
        operand0: A number or a tile (P, 1), fp32; of the data's type for addresses.
        reverse0: Compute `operand0 op0 data`.
        op1: Second operator, or None.
        operand1: As `operand0`.
        reverse1: Compute `operand1 op1 ...`.
        engine: Vector, Scalar, GpSimd, or unknown.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    if data.form.dtype.is_32bit_integer and are_integers(operand0, operand1, reverse0, reverse1):
        tiles, operators = (form_of(operand0), form_of(operand1)), (op0, op1)
        if makes_addresses(dst.form, data.form, tiles, operators, engine):
            write(dst, address_values(exact(data), operators, (operand0, operand1)))
            return
    _tensor_scalar_values(dst, data, (op0, operand0, reverse0), (op1, operand1, reverse1))


def _tensor_scalar_values(
    dst: NkiTensor, data: NkiTensor, first: tuple[Any, Any, bool], second: tuple[Any, Any, bool]
) -> None:
    op0 = find_operator(first[0])
    for op, operand, place in ((op0, first[1], 0), (second[0], second[1], 1)):
        if operand is None and op is not None and find_operator(op).arity > 1:
            raise refuse(f"tensor_scalar: {find_operator(op).name} needs operand{place}, a number or a tile")
        if operand is not None and op is None:
            raise refuse(
                f"tensor_scalar: operand{place} has no op{place}; give it an operator, or leave it out"
            )
    if op0.bitwise:
        write(dst, _bitwise_scalar(exact(data), first, second))
        return
    values = single(data)
    partitions, rank = data.form.partitions, max(values.ndim, 1)
    operand0 = column(first[1] if first[1] is not None else 0.0, partitions, rank)
    if second[0] is None and op0.has_out and op0.arity == 2 and fits_out(dst, values.shape):
        pair = (operand0, values) if first[2] else (values, operand0)
        op0.function(*pair, out=dst.array)
        return
    result = apply(op0, values, operand0, first[2])
    if second[0] is not None:
        operand1 = column(second[1] if second[1] is not None else 0.0, partitions, rank)
        op1 = find_operator(second[0])
        if op1.has_out and op1.arity == 2 and fits_out(dst, result.shape):
            pair = (operand1, result) if second[2] else (result, operand1)
            op1.function(*pair, out=dst.array)
            return
        result = apply(op1, result, operand1, second[2])
    write(dst, result)


def _check_bits(op: Operator, operand: Any) -> None:
    """Refuse a number that is no pattern of bits, or no number of places to shift by."""
    shifts = op.name.endswith("shift")
    if operand is not None and (operand != int(operand) or (shifts and operand < 0)):
        raise refuse(
            f"tensor_scalar with {op.name} takes a whole number{' from 0 on' * shifts}, got {operand}; "
            "give one"
        )


def _bitwise_scalar(values: Array, first: tuple[Any, Any, bool], second: tuple[Any, Any, bool]) -> Array:
    for op, operand, reverse in (first, second):
        if op is None:
            continue
        if isinstance(operand, NkiTensor):
            scalar: Any = exact(operand).reshape((-1,) + (1,) * (values.ndim - 1)).astype(values.dtype)
        else:
            _check_bits(find_operator(op), operand)
            mask = (1 << (8 * values.dtype.itemsize)) - 1
            bits = np.array([int(operand or 0) & mask], np.uint64)
            scalar = bits.astype(np.dtype(f"u{values.dtype.itemsize}")).view(values.dtype)[0]
        values = apply(find_operator(op), values, scalar, reverse).astype(values.dtype)
    return values


def check_arithmetic(call: Call) -> None:
    """The rule of an instruction whose key is operators that compute with two numbers."""
    require_arithmetic(call.record.name, **call.given)


@instruction(Instruction(
    "scalar_tensor_tensor", Opcode.SCALAR_TENSOR_TENSOR, (Engine.VECTOR,),
    (Operand("dst", written=True, aligned=True), Operand("data", aligned=True),
     Operand("operand1", aligned=True),
     Operand("operand0", optional=True, streamed=False, column="data")),
    same_size=(("data", "operand1"), ("dst", "data")), apart=("data", "operand1"), key=("op0", "op1"),
    rule=check_arithmetic,
))  # fmt: skip
def scalar_tensor_tensor(
    dst: NkiTensor,
    data: NkiTensor,
    op0: Any,
    operand0: Scalar,
    op1: Any,
    operand1: NkiTensor,
    reverse0: bool = False,
    reverse1: bool = False,
    name: str | None = None,
) -> None:
    """dst = (data op0 operand0) op1 operand1, with `operand0` a scalar and `operand1` a tile.

    Args:
        dst: (P, ...) result tile.
        data: Tile of as many elements.
        op0: Arithmetic operator.
        operand0: A number or a tile (P, 1).
        op1: Arithmetic operator.
        operand1: Tile of the size of `data`; not both in PSUM.
        reverse0: Compute `operand0 op0 data`.
        reverse1: Compute `operand1 op1 ...`.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    values = single(data)
    scalar = column(operand0, data.form.partitions, values.ndim)
    result = apply(find_operator(op0), values, scalar, reverse0)
    write(dst, apply(find_operator(op1), result, shaped(single(operand1), result.shape), reverse1))
