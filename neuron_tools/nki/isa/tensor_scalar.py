"""Elementwise instructions with one number per partition."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_tools.backend.kinds import Kind
from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.isa.enums import engine as engines
from neuron_tools.nki.isa.instruction import NkiInstruction
from neuron_tools.nki.isa.issue import (
    compute_step,
    form_of,
    issue,
    open_engines,
    ready,
    refuse,
    require_column,
    require_integers,
    require_on_chip,
    require_reach,
    require_same_size,
    require_start_partition,
    shaped,
)
from neuron_tools.nki.operators import Operator, find_operator
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import Array, column, exact, fits_out, single, write
from neuron_tools.nki.view_form import ViewForm
from neuron_tools.records.program import Engine, Memory, Opcode

_AFFINE = ("add", "subtract", "multiply")
"""Operators that the Scalar engine can apply as the scale or the bias of an activation."""
Operand = Any
"""A number, a register, or a tile with one element per partition."""


def apply(op: Operator, values: Array, operand: Any, reverse: bool) -> Array:
    """values op operand, or the other way round; a unary operator ignores the operand."""
    if op.arity == 1:
        return op.function(values)
    return op.function(operand, values) if reverse else op.function(values, operand)


def tensor_scalar(
    dst: NkiTensor,
    data: NkiTensor,
    op0: Any,
    operand0: Operand,
    reverse0: bool = False,
    op1: Any = None,
    operand1: Operand = None,
    reverse1: bool = False,
    engine: engines = engines.unknown,
    name: str | None = None,
) -> NkiInstruction:
    """dst = (data op0 operand0) op1 operand1, the operands broadcast along the free dimensions.

    Args:
        dst: (P, ...) result tile.
        data: Tile of as many elements, SBUF or PSUM.
        op0: First operator.
        operand0: A number or a tile (P, 1).
        reverse0: Compute `operand0 op0 data`.
        op1: Second operator, or None.
        operand1: As `operand0`.
        reverse1: Compute `operand1 op1 ...`.
        engine: Vector, Scalar, GpSimd, or unknown.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = tracing.OF_THREAD.trace
    if trace is None or trace.pending is not None:
        trace = ready()
    if dst.region < 0:
        dst.resolve()
    if data.region < 0:
        data.resolve()
    form0, form1 = form_of(operand0), form_of(operand1)
    key = (tensor_scalar, op0, op1, dst.form, data.form, form0, form1, engine)
    kind = trace.kinds.get(key)
    if kind is None:
        kind = trace.add_kind(key, _tensor_scalar_kind(dst.form, data.form, form0, form1, op0, op1, engine))
    if form0 is None and form1 is None:
        if not data.storage.complete:  # type: ignore[union-attr]
            trace.check_read(data)
        trace.record(kind, dst.region, -1, data.region)
        if not dst.storage.complete:  # type: ignore[union-attr]
            trace.mark_written(dst)
    else:
        issue(trace, kind, dst, data, operand0, operand1)
    if trace.values:
        _tensor_scalar_values(dst, data, (op0, operand0, reverse0), (op1, operand1, reverse1))
    return NkiInstruction(trace)


def _tensor_scalar_values(
    dst: NkiTensor, data: NkiTensor, first: tuple[Any, Any, bool], second: tuple[Any, Any, bool]
) -> None:
    op0 = find_operator(first[0])
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


def _bitwise_scalar(values: Array, first: tuple[Any, Any, bool], second: tuple[Any, Any, bool]) -> Array:
    for op, operand, reverse in (first, second):
        if op is None:
            continue
        if isinstance(operand, NkiTensor):
            scalar: Any = exact(operand).reshape((-1,) + (1,) * (values.ndim - 1)).astype(values.dtype)
        else:
            mask = (1 << (8 * values.dtype.itemsize)) - 1
            bits = np.array([int(operand or 0) & mask], np.uint64)
            scalar = bits.astype(np.dtype(f"u{values.dtype.itemsize}")).view(values.dtype)[0]
        values = apply(find_operator(op), values, scalar, reverse).astype(values.dtype)
    return values


def _tensor_scalar_kind(
    dst: ViewForm, data: ViewForm, form0: ViewForm | None, form1: ViewForm | None, op0: Any, op1: Any,
    engine: engines,
) -> Kind:  # fmt: skip
    name = "tensor_scalar"
    require_on_chip(name, dst=dst, data=data, operand0=form0, operand1=form1)
    require_same_size(name, dst, data, "dst and data")
    require_start_partition(name, dst=dst, data=data)
    require_column(name, "operand0", form0, data.partitions)
    require_column(name, "operand1", form1, data.partitions)
    first = find_operator(op0)
    require_integers(name, first, dst, data)
    if op1 is not None and find_operator(op1).bitwise != first.bitwise:
        raise refuse(f"{name} takes two arithmetic or two bitwise operators, got {first.name} and "
                     f"{find_operator(op1).name}")  # fmt: skip
    chosen = engine.chosen or Engine.VECTOR
    require_reach(name, chosen, dst, data, form0, form1)
    affine = first.name in _AFFINE and (op1 is None or find_operator(op1).name in _AFFINE)
    return Kind(
        name, (compute_step(chosen, Opcode.TENSOR_SCALAR, dst, data),),
        engines=open_engines(engine, dst, data) if affine else (),
    )  # fmt: skip


def scalar_tensor_tensor(
    dst: NkiTensor,
    data: NkiTensor,
    op0: Any,
    operand0: Operand,
    op1: Any,
    operand1: NkiTensor,
    reverse0: bool = False,
    reverse1: bool = False,
    name: str | None = None,
) -> NkiInstruction:
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
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    if dst.region < 0:
        dst.resolve()
    if data.region < 0:
        data.resolve()
    if operand1.region < 0:
        operand1.resolve()
    form0 = form_of(operand0)
    key = (scalar_tensor_tensor, op0, op1, dst.form, data.form, form0, operand1.form)
    kind = trace.kinds.get(key)
    if kind is None:
        forms = (dst.form, data.form, operand1.form, form0)
        kind = trace.add_kind(key, _scalar_tensor_tensor_kind(*forms))
    issue(trace, kind, dst, data, operand1, operand0)
    if trace.values:
        values = single(data)
        scalar = column(operand0, data.form.partitions, values.ndim)
        result = apply(find_operator(op0), values, scalar, reverse0)
        write(dst, apply(find_operator(op1), result, shaped(single(operand1), result.shape), reverse1))
    return NkiInstruction(trace)


def _scalar_tensor_tensor_kind(
    dst: ViewForm, data: ViewForm, operand1: ViewForm, form0: ViewForm | None
) -> Kind:
    name = "scalar_tensor_tensor"
    require_on_chip(name, dst=dst, data=data, operand1=operand1, operand0=form0)
    require_same_size(name, data, operand1, "data and operand1")
    require_same_size(name, dst, data, "dst and data")
    require_column(name, "operand0", form0, data.partitions)
    require_start_partition(name, dst=dst, data=data, operand1=operand1)
    if data.memory is Memory.PSUM and operand1.memory is Memory.PSUM:
        raise refuse(f"{name} cannot read both data and operand1 from PSUM; copy one to SBUF first")
    return Kind(name, (compute_step(Engine.VECTOR, Opcode.SCALAR_TENSOR_TENSOR, dst, data, operand1),))
