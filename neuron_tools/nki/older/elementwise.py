"""Elementwise instructions, as results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuron_tools.nki import isa
from neuron_tools.nki.dtypes import as_dtype, promote
from neuron_tools.nki.isa.enums import engine as engines, reduce_cmd as commands
from neuron_tools.nki.language.movement import in_sbuf
from neuron_tools.nki.language.results import Restriction
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.older.tiles import result_type, tile_result
from neuron_tools.nki.tensor import NkiTensor


def activation(
    op: Any,
    data: NkiTensor,
    *,
    bias: Any = None,
    scale: Any = 1.0,
    reduce_op: Any = None,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: commands = commands.idle,
    mask: Any = None,
    dtype: Any = None,
    **_options: Any,
) -> NkiTensor:
    """op(data * scale + bias) on the Scalar engine."""

    def emit(target: NkiTensor, left: Restriction) -> None:
        isa.activation(
            target, op, left.part(data), left.part(bias), left.part(scale), reduce_op, left.part(reduce_res),
            reduce_cmd,
        )  # fmt: skip

    return tile_result(data.shape, result_type(dtype, data.dtype), mask, emit)


def activation_reduce(
    op: Any,
    data: NkiTensor,
    *,
    reduce_op: Any,
    reduce_res: NkiTensor,
    bias: Any = None,
    scale: Any = 1.0,
    mask: Any = None,
    dtype: Any = None,
    **_options: Any,
) -> NkiTensor:
    """`activation` that also writes the reduction of its result into `reduce_res`."""
    return activation(
        op, data, bias=bias, scale=scale, reduce_op=reduce_op, reduce_res=reduce_res,
        reduce_cmd=commands.reset_reduce, mask=mask, dtype=dtype,
    )  # fmt: skip


def tensor_tensor(
    data1: NkiTensor,
    data2: NkiTensor,
    op: Any,
    *,
    dtype: Any = None,
    mask: Any = None,
    engine: engines = engines.unknown,
    **_options: Any,
) -> NkiTensor:
    """data1 op data2."""
    kind = result_type(dtype, promote(data1.dtype, data2.dtype))
    shape = data1.shape if data1.size >= data2.size else data2.shape

    def emit(target: NkiTensor, left: Restriction) -> None:
        first, second = left.part(data1), left.part(data2)
        if first.buffer is MemoryRegion.psum and second.buffer is MemoryRegion.psum:
            second = in_sbuf(second)
        if first.size != target.size:
            first = first.broadcast_to(target.shape)
        if second.size != target.size:
            second = second.broadcast_to(target.shape)
        chosen = engine
        if chosen is engines.gpsimd and MemoryRegion.psum in (first.buffer, second.buffer, target.buffer):
            chosen = engines.vector
        isa.tensor_tensor(target, first, second, op, chosen)

    return tile_result(shape, kind, mask, emit)


def tensor_scalar(
    data: NkiTensor,
    op0: Any,
    operand0: Any,
    reverse0: bool = False,
    op1: Any = None,
    operand1: Any = None,
    reverse1: bool = False,
    *,
    dtype: Any = None,
    mask: Any = None,
    engine: engines = engines.unknown,
    **_options: Any,
) -> NkiTensor:
    """(data op0 operand0) op1 operand1."""

    def emit(target: NkiTensor, left: Restriction) -> None:
        isa.tensor_scalar(
            target, left.part(data), op0, left.part(operand0), reverse0, op1, left.part(operand1), reverse1,
            engine,
        )  # fmt: skip

    return tile_result(data.shape, result_type(dtype, data.dtype), mask, emit)


def scalar_tensor_tensor(
    *,
    data: NkiTensor,
    op0: Any,
    operand0: Any,
    op1: Any,
    operand1: NkiTensor,
    reverse0: bool = False,
    reverse1: bool = False,
    dtype: Any = None,
    mask: Any = None,
    **_options: Any,
) -> NkiTensor:
    """(data op0 operand0) op1 operand1, with `operand1` a tile."""
    kind = result_type(dtype, promote(data.dtype, operand1.dtype))

    def emit(target: NkiTensor, left: Restriction) -> None:
        second = left.part(operand1)
        if second.size != target.size:
            second = second.broadcast_to(target.shape)
        isa.scalar_tensor_tensor(
            target, left.part(data), op0, left.part(operand0), op1, second, reverse0, reverse1
        )

    return tile_result(data.shape, kind, mask, emit)


def tensor_scalar_reduce(
    *,
    data: NkiTensor,
    op0: Any,
    operand0: Any,
    reduce_op: Any,
    reduce_res: NkiTensor,
    reverse0: bool = False,
    dtype: Any = None,
    mask: Any = None,
    **_options: Any,
) -> NkiTensor:
    """data op0 operand0, with its reduction in `reduce_res`."""

    def emit(target: NkiTensor, left: Restriction) -> None:
        isa.tensor_scalar_reduce(
            target, left.part(data), op0, left.part(operand0), reduce_op, left.part(reduce_res), reverse0
        )

    return tile_result(data.shape, result_type(dtype, data.dtype), mask, emit)


def reciprocal(data: NkiTensor, *, dtype: Any = None, mask: Any = None, **_options: Any) -> NkiTensor:
    """1 / data on the Vector engine."""
    return tile_result(
        data.shape,
        result_type(dtype, data.dtype),
        mask,
        lambda target, left: isa.reciprocal(target, left.part(data)),
    )


def memset(
    shape: Sequence[int],
    value: Any,
    dtype: Any,
    *,
    mask: Any = None,
    engine: engines = engines.unknown,
    **_options: Any,
) -> NkiTensor:
    """A tile filled with a constant."""
    extents = tuple(int(extent) for extent in shape)
    return tile_result(extents, as_dtype(dtype), mask, lambda target, left: isa.memset(target, value, engine))


def dropout(data: NkiTensor, prob: Any, *, mask: Any = None, dtype: Any = None, **_options: Any) -> NkiTensor:
    """data with elements replaced by 0, each with probability `prob`."""
    return tile_result(
        data.shape,
        result_type(dtype, data.dtype),
        mask,
        lambda target, left: isa.dropout(target, left.part(data), left.part(prob)),
    )
