"""Elementwise instructions of the Vector engine on two tiles, and functions of one."""

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
    ready,
    refuse,
    require_integers,
    require_on_chip,
    require_reach,
    require_same_size,
    require_start_partition,
    shaped,
)
from neuron_tools.nki.isa.tensor_scalar import Operand
from neuron_tools.nki.operators import Operator, find_operator
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import column, exact, fits_out, single, write
from neuron_tools.nki.view_form import ViewForm
from neuron_tools.records.program import Engine, Memory, Opcode


def tensor_tensor(
    dst: NkiTensor,
    data1: NkiTensor,
    data2: NkiTensor,
    op: Any,
    engine: engines = engines.unknown,
    name: str | None = None,
) -> NkiInstruction:
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
    trace = tracing.OF_THREAD.trace
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
    return NkiInstruction(trace)


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
    require_integers(name, op, dst, data1, data2)
    chosen = engine.chosen or Engine.VECTOR
    if op.name == "power" or native_integers((dst, data1, data2), engine):
        chosen = Engine.GPSIMD
    require_reach(name, chosen, dst, data1, data2)
    return Kind(name, (compute_step(chosen, Opcode.TENSOR_TENSOR, dst, data1, data2),))


def reciprocal(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> NkiInstruction:
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
    return NkiInstruction(trace)


def exponential(
    dst: NkiTensor,
    src: NkiTensor,
    max_value: Operand = 0.0,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: Any = None,
    reduce_init: Operand = 0.0,
    name: str | None = None,
) -> NkiInstruction:
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
    return NkiInstruction(trace)
