"""Reductions of the Vector engine along the free dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from neuron_tools.backend.kinds import Kind
from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.isa.accumulation import VECTOR, accumulate
from neuron_tools.nki.isa.enums import reduce_cmd as commands
from neuron_tools.nki.isa.instruction import NkiInstruction
from neuron_tools.nki.isa.issue import (
    compute_step,
    form_of,
    issue,
    ready,
    refuse,
    require_column,
    require_on_chip,
    require_same_size,
)
from neuron_tools.nki.isa.tensor_scalar import Operand, apply
from neuron_tools.nki.operators import Operator, find_operator
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.tracer import Tracer
from neuron_tools.nki.values import column, exact, single, write
from neuron_tools.nki.view_form import ViewForm
from neuron_tools.records.program import Engine, Flag, Opcode


def tensor_reduce(
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    axis: int | Sequence[int],
    negate: bool = False,
    keepdims: bool = False,
    name: str | None = None,
) -> NkiInstruction:
    """dst = reduction of `data` over its last free dimensions, in fp32.

    Args:
        dst: (P, kept dimensions) tile.
        op: `nl.add`, `nl.maximum`, ...; a bitwise operator for integers.
        data: (P, ...) tile.
        axis: The dimensions to reduce, the last ones. One number is that axis; where it is not the last and
            `dst` has the size for it, it is how many of the last ones.
        negate: Multiply the result by -1.
        keepdims: Keep reduced dimensions with size 1.
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
    axes = _trailing(axis, data, dst) if isinstance(axis, int) else tuple(int(a) for a in axis)
    key = (tensor_reduce, op, dst.form, data.form, axes)
    kind = trace.kinds.get(key)
    if kind is None:
        kind = trace.add_kind(key, _reduce_kind(trace, dst.form, data.form, find_operator(op), axes))
    issue(trace, kind, dst, data)
    if trace.values:
        operator = find_operator(op)
        values = exact(data) if operator.bitwise else single(data)
        axes = tuple(a % values.ndim for a in axes)
        assert operator.reduce is not None
        result = operator.reduce(values, axis=axes if len(axes) > 1 else axes[0])
        write(dst, -result if negate else result)
    return NkiInstruction(trace)


def _trailing(axis: int, data: NkiTensor, dst: NkiTensor) -> tuple[int, ...]:
    """The reduced axes: a number before the last axis counts how many of the last ones, if `dst` fits."""
    shape = data.shape
    rank = len(shape)
    if not 0 < axis < rank - 1:
        return (axis,)
    kept = math.prod(shape[: rank - axis])
    others = data.size // shape[axis]
    return tuple(range(rank - axis, rank)) if dst.size == kept != others else (axis,)


def _reduce_kind(trace: Tracer, dst: ViewForm, data: ViewForm, op: Operator, axes: tuple[int, ...]) -> Kind:
    require_on_chip("tensor_reduce", dst=dst, data=data)
    rank = len(data.shape)
    reduced = sorted(a % rank if -rank <= a < rank else rank for a in axes)
    if not reduced or reduced[-1] >= rank:
        raise refuse(f"tensor_reduce: axis {axes} is outside shape {data.shape}")
    if op.reduce is None:
        raise refuse(f"tensor_reduce cannot reduce with {op.name}")
    if reduced[0] == 0 and not trace.older_dialect:
        raise refuse(
            "tensor_reduce reduces free dimensions only; turn the tile first (nisa.nc_transpose) or multiply "
            "it with ones (nisa.nc_matmul) to reduce over partitions"
        )
    if reduced != list(range(rank - len(reduced), rank)) and not trace.older_dialect:
        raise refuse(f"tensor_reduce reduces the last dimensions, got axis {axes} of shape {data.shape}")
    kept = 1
    for index, extent in enumerate(data.shape):
        kept *= 1 if index in reduced else extent
    if dst.size != kept:
        raise refuse(
            f"tensor_reduce of shape {data.shape} over {axes} leaves {kept} elements, but dst has shape "
            f"{dst.shape}"
        )
    engine = Engine.GPSIMD if reduced[0] == 0 else Engine.VECTOR
    opcode = Opcode.PARTITION_REDUCE if reduced[0] == 0 else Opcode.TENSOR_REDUCE
    return Kind("tensor_reduce", (compute_step(engine, opcode, dst, data, elements=data.elements),))


def tensor_scalar_reduce(
    dst: NkiTensor,
    data: NkiTensor,
    op0: Any,
    operand0: Operand,
    reduce_op: Any,
    reduce_res: NkiTensor | None = None,
    reverse0: bool = False,
    reduce_cmd: commands = commands.reset_reduce,
    reduce_init: Operand = None,
    reduce_res_negate: bool = False,
    name: str | None = None,
) -> NkiInstruction:
    """dst = data op0 operand0, and reduce_res = the reduction of that over all free dimensions.

    Args:
        dst: (P, ...) tile.
        data: Tile of as many elements.
        op0: Arithmetic operator.
        operand0: A number or a tile (P, 1).
        reduce_op: add, multiply, maximum or minimum.
        reduce_res: (P, 1) result of the reduction.
        reverse0: Compute `operand0 op0 data`.
        reduce_cmd: What to do with the accumulation registers.
        reduce_init: Their start under `load_reduce`.
        reduce_res_negate: Multiply the reduction by -1.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    forms = form_of(dst), form_of(data), form_of(operand0), form_of(reduce_res)
    key = (tensor_scalar_reduce, op0, reduce_op, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        require_on_chip("tensor_scalar_reduce", dst=dst.form, data=data.form, reduce_res=forms[3])
        require_same_size("tensor_scalar_reduce", dst.form, data.form, "dst and data")
        require_column("tensor_scalar_reduce", "operand0", forms[2], data.form.partitions)
        step = compute_step(Engine.VECTOR, Opcode.TENSOR_SCALAR, dst.form, data.form, flags=Flag.REDUCES)
        kind = trace.add_kind(key, Kind("tensor_scalar_reduce", (step,)))
    issue(trace, kind, dst, data, operand0, second=reduce_res)
    if trace.values:
        values = single(data)
        operand = column(operand0 if operand0 is not None else 0.0, data.form.partitions, values.ndim)
        result = apply(find_operator(op0), values, operand, reverse0)
        write(dst, result)
        accumulate(trace, VECTOR, result, find_operator(reduce_op), reduce_cmd, reduce_res, reduce_init,
                   reduce_res_negate)  # fmt: skip
    return NkiInstruction(trace)
