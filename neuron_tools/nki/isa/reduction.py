"""Reductions of the Vector engine along the free dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from neuron_tools.backend.kinds import Kind
from neuron_tools.nki.isa.accumulation import VECTOR, accumulate
from neuron_tools.nki.isa.enums import reduce_cmd as commands
from neuron_tools.nki.isa.issue import (
    compute_step,
    refuse,
)
from neuron_tools.nki.isa.prologue import instruction
from neuron_tools.nki.isa.table import Call, Derived, Instruction, Operand
from neuron_tools.nki.isa.tensor_scalar import Scalar, apply
from neuron_tools.nki.operators import find_operator
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import column, exact, single, write
from neuron_tools.records.program import Engine, Flag, Opcode


def _axes(axis: int | Sequence[int], data: NkiTensor, dst: NkiTensor) -> tuple[int, ...]:
    """The reduced axes: a number before the last axis counts how many of the last ones, if `dst` fits."""
    if not isinstance(axis, int):
        return tuple(int(a) for a in axis)
    shape = data.shape
    rank = len(shape)
    if not 0 < axis < rank - 1:
        return (axis,)
    kept = math.prod(shape[: rank - axis])
    others = data.size // shape[axis]
    return tuple(range(rank - axis, rank)) if dst.size == kept != others else (axis,)


def _reduced(call: Call) -> list[int]:
    """The reduced axes in order, counted from the first; the rank for one outside the shape."""
    rank = len(call.form("data").shape)
    return sorted(a % rank if -rank <= a < rank else rank for a in call.given["axis"])


def _check_axes(call: Call) -> None:
    """Refuse axes that the engine cannot reduce, and results of another size."""
    dst, data, axes = call.form("dst"), call.form("data"), call.given["axis"]
    older, op = call.trace.older_dialect, find_operator(call.given["op"])
    rank, reduced = len(data.shape), _reduced(call)
    if not reduced or reduced[-1] >= rank:
        raise refuse(f"tensor_reduce: axis {axes} is outside shape {data.shape}")
    if op.reduce is None:
        raise refuse(f"tensor_reduce cannot reduce with {op.name}")
    if reduced[0] == 0 and not older:
        raise refuse(
            "tensor_reduce reduces free dimensions only; turn the tile first (nisa.nc_transpose) or multiply "
            "it with ones (nisa.nc_matmul) to reduce over partitions"
        )
    if reduced != list(range(rank - len(reduced), rank)) and not older:
        raise refuse(f"tensor_reduce reduces the last dimensions, got axis {axes} of shape {data.shape}")
    kept = math.prod(extent for index, extent in enumerate(data.shape) if index not in reduced)
    if dst.size != kept:
        raise refuse(
            f"tensor_reduce of shape {data.shape} over {axes} leaves {kept} elements, but dst has shape "
            f"{dst.shape}"
        )


def _reduction(call: Call) -> Kind:
    """On Vector; over the partitions, which the older dialect allows, on GpSimd."""
    dst, data = call.form("dst"), call.form("data")
    engine, opcode = Engine.VECTOR, Opcode.TENSOR_REDUCE
    if _reduced(call)[0] == 0:
        engine, opcode = Engine.GPSIMD, Opcode.PARTITION_REDUCE
    return Kind(call.record.name, (compute_step(engine, opcode, dst, data, elements=data.elements),))


@instruction(Instruction(
    "tensor_reduce", Opcode.TENSOR_REDUCE, (Engine.VECTOR,),
    (Operand("dst", written=True), Operand("data")),
    key=("op", "axis"), derived=(Derived("axis", ("axis", "data", "dst"), _axes),),
    rule=_check_axes, build=_reduction,
))  # fmt: skip
def tensor_reduce(
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    axis: int | Sequence[int],
    negate: bool = False,
    keepdims: bool = False,
    name: str | None = None,
) -> None:
    """dst = reduction of `data` over its last free dimensions, in fp32.

    Args:
        dst: (P, kept dimensions) tile.
        op: `nl.add`, `nl.maximum`, ...; a bitwise operator for integers.
        data: (P, ...) tile.
        axis: The dimensions to reduce, the last ones. One number is that axis; where it is not the last and
            `dst` has the size for it, it is how many of the last ones.
        negate: Multiply the result by -1.
        keepdims: Keep reduced dimensions with size 1.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    operator = find_operator(op)
    values = exact(data) if operator.bitwise else single(data)
    axes = tuple(a % values.ndim for a in _axes(axis, data, dst))
    assert operator.reduce is not None
    result = operator.reduce(values, axis=axes if len(axes) > 1 else axes[0])
    write(dst, -result if negate else result)


@instruction(Instruction(
    "tensor_scalar_reduce", Opcode.TENSOR_SCALAR, (Engine.VECTOR,),
    (Operand("dst", written=True), Operand("data"),
     Operand("operand0", optional=True, streamed=False, column="data"),
     Operand("reduce_res", written=True, optional=True, column="data")),
    same_size=(("dst", "data"),), key=("op0", "reduce_op"),
    build=lambda call: call.kind(flags=Flag.REDUCES),
))  # fmt: skip
def tensor_scalar_reduce(
    dst: NkiTensor,
    data: NkiTensor,
    op0: Any,
    operand0: Scalar,
    reduce_op: Any,
    reduce_res: NkiTensor | None = None,
    reverse0: bool = False,
    reduce_cmd: commands = commands.reset_reduce,
    reduce_init: Scalar = None,
    reduce_res_negate: bool = False,
    name: str | None = None,
) -> None:
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
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    values = single(data)
    operand = column(operand0 if operand0 is not None else 0.0, data.form.partitions, values.ndim)
    result = apply(find_operator(op0), values, operand, reverse0)
    write(dst, result)
    accumulate(
        VECTOR, result, find_operator(reduce_op), reduce_cmd, reduce_res, reduce_init, reduce_res_negate
    )
