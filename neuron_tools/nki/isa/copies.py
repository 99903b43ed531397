"""Copies of tiles on chip, also under a predicate, and constants."""

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
    require_on_chip,
    require_reach,
    require_same_size,
    require_start_partition,
    shaped,
)
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import Array, cast, exact, single, write
from neuron_tools.nki.view_form import ViewForm
from neuron_tools.records.program import Engine, Memory, Opcode


def tensor_copy(
    dst: NkiTensor, src: NkiTensor, engine: engines = engines.unknown, name: str | None = None
) -> NkiInstruction:
    """dst = src, between SBUF and PSUM; bit for bit where the types are equal, through fp32 otherwise.

    Args:
        dst: (P, ...) tile.
        src: Tile of as many elements.
        engine: Vector, Scalar, GpSimd (no PSUM), or unknown.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = tracing.OF_THREAD.trace
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
    return NkiInstruction(trace)


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
    require_reach(name, chosen, dst, src)
    return Kind(
        name, (compute_step(chosen, Opcode.TENSOR_COPY, dst, src),), engines=open_engines(engine, dst, src)
    )


def tensor_copy_predicated(
    dst: NkiTensor, src: Any, predicate: NkiTensor, reverse_pred: bool = False, name: str | None = None
) -> NkiInstruction:
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
    return NkiInstruction(trace)


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


def memset(
    dst: NkiTensor, value: Any, engine: engines = engines.unknown, name: str | None = None
) -> NkiInstruction:
    """Fill a tile with a constant.

    Args:
        dst: (P, ...) tile.
        value: The constant.
        engine: Vector, GpSimd, or unknown.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = tracing.OF_THREAD.trace
    if trace is None or trace.pending is not None:
        trace = ready()
    if dst.region < 0:
        dst.resolve()
    constant = float(value) if isinstance(value, (int, float, np.number)) else None
    key = (memset, dst.form, engine, constant)
    kind = trace.kinds.get(key)
    if kind is None:
        form = dst.form
        require_on_chip("memset", dst=form)
        chosen = engine.chosen or Engine.VECTOR
        require_reach("memset", chosen, form)
        step = compute_step(chosen, Opcode.MEMSET, form)
        open_to = (Engine.GPSIMD,) if engine.chosen is None and form.memory is Memory.SBUF else ()
        kind = trace.add_kind(key, Kind("memset", (step,), engines=open_to, constant=constant))
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
    return NkiInstruction(trace)
