"""Elementwise instructions of the Vector engine (some also on Scalar and GpSimd)."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.isa.enums import engine as engines
from neuron_tools.nki.isa.issue import (
    compute_step,
    form_of,
    issue,
    ready,
    refuse,
    require_column,
    require_on_chip,
    require_same_size,
    require_start_partition,
    shaped,
)
from neuron_tools.nki.kinds import Kind
from neuron_tools.nki.operators import Operator, find_operator
from neuron_tools.nki.tensor import NkiTensor, ViewForm
from neuron_tools.nki.values import Array, cast, column, exact, fits_out, single, write
from neuron_tools.simulator.program import Engine, Memory, Opcode

Operand = Any
"""A number, a register, or a tile with one element per partition."""


def tensor_tensor(
    dst: NkiTensor,
    data1: NkiTensor,
    data2: NkiTensor,
    op: Any,
    engine: engines = engines.unknown,
    name: str | None = None,
) -> None:
    """dst = data1 op data2, element by element, in fp32 (int32 and uint32 natively on GpSimd).

    Args:
        dst: (P, ...) result tile, SBUF or PSUM.
        data1: Tile of as many partitions and elements.
        data2: The same; not both in PSUM.
        op: Binary operator, `nl.add` and so on.
        engine: `engine.vector`, `engine.gpsimd`, or unknown.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = tracing._ACTIVE
    if trace is None or trace.pending is not None:
        trace = ready()
    if dst.region < 0:
        dst.resolve()
    if data1.region < 0:
        data1.resolve()
    if data2.region < 0:
        data2.resolve()
    key = (tensor_tensor, op, dst.form, data1.form, data2.form, engine)
    kind = trace.kinds.get(key)
    if kind is None:
        kind = trace.add_kind(
            key, _tensor_tensor_kind(dst.form, data1.form, data2.form, find_operator(op), engine)
        )
    if not data1.storage.complete:  # type: ignore[union-attr]
        trace.check_read(data1)
    if not data2.storage.complete:  # type: ignore[union-attr]
        trace.check_read(data2)
    trace.record(kind, dst.region, -1, data1.region, data2.region)
    if not dst.storage.complete:  # type: ignore[union-attr]
        trace.mark_written(dst)
    if trace.values:
        _combine(dst, data1, data2, find_operator(op), engine)


def native_integers(forms: tuple[ViewForm, ...], engine: engines) -> bool:
    """Whether an operation runs on GpSimd with 32-bit integers: all are, none is in PSUM."""
    if engine not in (engines.unknown, engines.gpsimd):
        return False
    return all(form.dtype.is_32bit_integer and form.memory is not Memory.PSUM for form in forms)


def _combine(dst: NkiTensor, data1: NkiTensor, data2: NkiTensor, op: Operator, engine: engines) -> None:
    if op.bitwise or native_integers((dst.form, data1.form, data2.form), engine):
        first = exact(data1)
        write(dst, op.function(first, shaped(exact(data2), first.shape)))
        return
    first, second = single(data1), single(data2)
    if second.shape != first.shape:
        second = shaped(second, first.shape)
    if op.has_out and fits_out(dst, first.shape):
        op.function(first, second, out=dst.array)
    else:
        write(dst, op.function(first, second))


def _tensor_tensor_kind(
    dst: ViewForm, data1: ViewForm, data2: ViewForm, op: Operator, engine: engines
) -> Kind:
    name = "tensor_tensor"
    require_on_chip(name, dst=dst, data1=data1, data2=data2)
    require_same_size(name, data1, data2, "data1 and data2")
    require_same_size(name, dst, data1, "dst and data1")
    require_start_partition(name, dst=dst, data1=data1, data2=data2)
    if data1.memory is Memory.PSUM and data2.memory is Memory.PSUM:
        raise refuse(
            "tensor_tensor cannot read both operands from PSUM; copy one to SBUF first (nisa.tensor_copy)"
        )
    _check_bitwise(name, op, dst, data1, data2)
    chosen = engine.chosen or Engine.VECTOR
    if op.name == "power" or native_integers((dst, data1, data2), engine):
        chosen = Engine.GPSIMD
    _check_gpsimd(name, chosen, dst, data1, data2)
    return Kind(name, (compute_step(chosen, Opcode.TENSOR_TENSOR, dst, data1, data2),))


def _check_bitwise(name: str, op: Operator, *forms: ViewForm) -> None:
    if op.bitwise:
        for form in forms:
            if form.dtype.is_float:
                raise refuse(
                    f"{name} with {op.name} works on bit patterns of integers, but a tile is {form.dtype}"
                )


def _check_gpsimd(name: str, chosen: Engine, *forms: ViewForm | None) -> None:
    if chosen is Engine.GPSIMD and any(f is not None and f.memory is Memory.PSUM for f in forms):
        raise refuse(f"{name} on GpSimd cannot reach PSUM; use the Vector engine or copy to SBUF first")


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
) -> None:
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
    trace = tracing._ACTIVE
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
    _check_bitwise(name, first, dst, data)
    if op1 is not None and find_operator(op1).bitwise != first.bitwise:
        raise refuse(f"{name} takes two arithmetic or two bitwise operators, got {first.name} and "
                     f"{find_operator(op1).name}")  # fmt: skip
    chosen = engine.chosen or Engine.VECTOR
    _check_gpsimd(name, chosen, dst, data, form0, form1)
    return Kind(name, (compute_step(chosen, Opcode.TENSOR_SCALAR, dst, data),))


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


def tensor_copy(
    dst: NkiTensor, src: NkiTensor, engine: engines = engines.unknown, name: str | None = None
) -> None:
    """dst = src, between SBUF and PSUM; bit for bit where the types are equal, through fp32 otherwise.

    Args:
        dst: (P, ...) tile.
        src: Tile of as many elements.
        engine: Vector, Scalar, GpSimd (no PSUM), or unknown.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = tracing._ACTIVE
    if trace is None or trace.pending is not None:
        trace = ready()
    if dst.region < 0:
        dst.resolve()
    if src.region < 0:
        src.resolve()
    key = (tensor_copy, dst.form, src.form, engine)
    kind = trace.kinds.get(key)
    if kind is None:
        kind = trace.add_kind(key, _copy_kind(dst.form, src.form, engine))
    if not src.storage.complete:  # type: ignore[union-attr]
        trace.check_read(src)
    trace.record(kind, dst.region, -1, src.region)
    if not dst.storage.complete:  # type: ignore[union-attr]
        trace.mark_written(dst)
    if trace.values:
        write(dst, converted(src, dst))


def converted(src: NkiTensor, dst: NkiTensor) -> Array:
    """The source's elements as the destination stores them."""
    if src.dtype is dst.dtype:
        return exact(src)
    if src.dtype.is_integer and dst.dtype.is_integer:
        return cast(exact(src).astype(np.float64), dst.dtype)
    return cast(single(src), dst.dtype)


def _copy_kind(dst: ViewForm, src: ViewForm, engine: engines) -> Kind:
    name = "tensor_copy"
    require_on_chip(name, dst=dst, src=src)
    require_same_size(name, dst, src, "dst and src")
    require_start_partition(name, dst=dst, src=src)
    chosen = engine.chosen or Engine.VECTOR
    _check_gpsimd(name, chosen, dst, src)
    return Kind(name, (compute_step(chosen, Opcode.TENSOR_COPY, dst, src),))


def tensor_copy_predicated(
    dst: NkiTensor, src: Any, predicate: NkiTensor, reverse_pred: bool = False, name: str | None = None
) -> None:
    """dst = src where the predicate is not zero; elsewhere `dst` stays.

    Args:
        dst: (P, ...) tile.
        src: Tile of as many elements, or a number.
        predicate: Integer tile of as many elements; not in PSUM together with `src`.
        reverse_pred: Copy where it is zero.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    if dst.region < 0:
        dst.resolve()
    if predicate.region < 0:
        predicate.resolve()
    form = form_of(src)
    key = (tensor_copy_predicated, dst.form, form, predicate.form)
    kind = trace.kinds.get(key)
    if kind is None:
        kind = trace.add_kind(key, _predicated_kind(dst.form, form, predicate.form))
    issue(trace, kind, dst, *((src, predicate) if form is not None else (predicate,)))
    if trace.values:
        shape = dst.shape
        chosen = shaped(exact(predicate), shape) != 0
        if reverse_pred:
            chosen = ~chosen
        new = shaped(converted(src, dst), shape) if form is not None else cast(np.float32(src), dst.dtype)
        write(dst, np.where(chosen, new, dst.array))


def _predicated_kind(dst: ViewForm, src: ViewForm | None, predicate: ViewForm) -> Kind:
    name = "tensor_copy_predicated"
    require_on_chip(name, dst=dst, src=src, predicate=predicate)
    if predicate.dtype.is_float:
        raise refuse(f"{name} takes an integer predicate, got {predicate.dtype}")
    require_same_size(name, dst, predicate, "dst and predicate")
    if src is not None and src.elements != 1:
        require_same_size(name, dst, src, "dst and src")
    read = src if src is not None else predicate
    return Kind(name, (compute_step(Engine.VECTOR, Opcode.TENSOR_COPY_PREDICATED, dst, read, predicate),))


def memset(dst: NkiTensor, value: Any, engine: engines = engines.unknown, name: str | None = None) -> None:
    """Fill a tile with a constant.

    Args:
        dst: (P, ...) tile.
        value: The constant.
        engine: Vector, GpSimd, or unknown.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = tracing._ACTIVE
    if trace is None or trace.pending is not None:
        trace = ready()
    if dst.region < 0:
        dst.resolve()
    key = (memset, dst.form, engine)
    kind = trace.kinds.get(key)
    if kind is None:
        form = dst.form
        require_on_chip("memset", dst=form)
        chosen = engine.chosen or Engine.VECTOR
        _check_gpsimd("memset", chosen, form)
        kind = trace.add_kind(key, Kind("memset", (compute_step(chosen, Opcode.MEMSET, form),)))
    trace.record(kind, dst.region)
    if not dst.storage.complete:  # type: ignore[union-attr]
        trace.mark_written(dst)
    if trace.values:
        target = dst.array
        if dst.gather is None and not isinstance(value, NkiTensor):
            number = np.asarray(value)
            target[...] = number if number.dtype.kind in "iub" else cast(number.astype(np.float32), dst.dtype)
        else:
            write(dst, np.float32(value))


def reciprocal(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> None:
    """dst = 1 / data on the Vector engine.

    Args:
        dst: (P, ...) tile.
        data: Tile of as many elements.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    if dst.region < 0:
        dst.resolve()
    if data.region < 0:
        data.resolve()
    key = (reciprocal, dst.form, data.form)
    kind = trace.kinds.get(key)
    if kind is None:
        require_on_chip("reciprocal", dst=dst.form, data=data.form)
        require_same_size("reciprocal", dst.form, data.form, "dst and data")
        step = compute_step(Engine.VECTOR, Opcode.RECIPROCAL, dst.form, data.form)
        kind = trace.add_kind(key, Kind("reciprocal", (step,)))
    issue(trace, kind, dst, data)
    if trace.values:
        write(dst, np.float32(1.0) / single(data))


def exponential(
    dst: NkiTensor,
    src: NkiTensor,
    max_value: Operand = 0.0,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: Any = None,
    reduce_init: Operand = 0.0,
    name: str | None = None,
) -> None:
    """dst = exp(src - max_value) on the Vector engine, with an optional sum (NeuronCore-v4).

    Args:
        dst: (P, ...) tile.
        src: Tile of as many elements.
        max_value: A number or a tile (P, 1).
        reduce_res: (P, 1) sum of the results.
        reduce_cmd: What to do with the accumulation registers.
        reduce_init: Their start under `load_reduce`.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule is broken, or the core is older than NeuronCore-v4.
    """
    from neuron_tools.nki.isa.accumulation import VECTOR, accumulate

    trace = ready()
    if trace.core.generation < 4:
        raise refuse(f"exponential needs NeuronCore-v4 or newer, the target is {trace.core.name}")
    forms = form_of(dst), form_of(src), form_of(max_value), form_of(reduce_res)
    key = (exponential, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        require_on_chip("exponential", dst=forms[0], src=forms[1])
        require_same_size("exponential", dst.form, src.form, "dst and src")
        step = compute_step(Engine.VECTOR, Opcode.TENSOR_SCALAR, dst.form, src.form)
        kind = trace.add_kind(key, Kind("exponential", (step,)))
    issue(trace, kind, dst, src, max_value, second=reduce_res)
    if trace.values:
        values = single(src)
        result = np.exp(values - column(max_value, src.form.partitions, values.ndim))
        write(dst, result)
        accumulate(trace, VECTOR, result, find_operator("add"), reduce_cmd, reduce_res, reduce_init)


__all__ = [
    "exponential",
    "memset",
    "reciprocal",
    "scalar_tensor_tensor",
    "tensor_copy",
    "tensor_copy_predicated",
    "tensor_scalar",
    "tensor_tensor",
]
