"""`neuronxcc.nki.isa`: the older spelling of the instructions, which return their result.

A result is held back until it is stored (`tile[...] = nisa.activation(...)`) and then computed straight into
its place; every call takes a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from neuron_tools.nki import dtypes, isa
from neuron_tools.nki.dtypes import DType, as_dtype, promote
from neuron_tools.nki.index import Condition, Index, Mask, pad
from neuron_tools.nki.isa.enums import dge_mode as dge_modes
from neuron_tools.nki.isa.enums import engine as engines
from neuron_tools.nki.isa.enums import oob_mode as bounds
from neuron_tools.nki.isa.enums import reduce_cmd as commands
from neuron_tools.nki.isa.issue import ready, refuse
from neuron_tools.nki.language.creation import ndarray
from neuron_tools.nki.language.math import matmul_result
from neuron_tools.nki.language.movement import in_sbuf
from neuron_tools.nki.language.results import Restriction, result
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.operators import FP32_MINIMUM
from neuron_tools.nki.tensor import NkiTensor


def _type(dtype: Any, default: DType) -> DType:
    return as_dtype(dtype) if dtype is not None else default


def _tile(
    shape: Sequence[int],
    dtype: DType,
    mask: Any,
    emit: Callable[[NkiTensor, Restriction], None],
    region: MemoryRegion = MemoryRegion.sbuf,
) -> NkiTensor:
    """A held-back result of the shape of its operands, restricted by the mask."""
    left = Restriction(shape, mask)
    return result(tuple(shape), dtype, lambda target: left.run(target, lambda part: emit(part, left)), region)


def nc_matmul(
    stationary: NkiTensor,
    moving: NkiTensor,
    *,
    is_stationary_onezero: bool = False,
    is_moving_onezero: bool = False,
    is_transpose: bool = False,
    tile_position: tuple[int, ...] = (),
    tile_size: tuple[int, ...] = (),
    mask: Any = None,
    **options: Any,
) -> NkiTensor:
    """stationary.T @ moving in PSUM; `psum += nc_matmul(...)` accumulates."""
    ready()
    perf_mode = _perf_mode(options.get("perf_mode"))
    halves = 2 if perf_mode is not isa.matmul_perf_mode.none else 1
    shape = (
        stationary.size // stationary.shape[0] // halves,
        moving.size // moving.shape[0] // halves,
    )
    return matmul_result(
        stationary, moving, shape, mask, is_stationary_onezero=is_stationary_onezero,
        is_moving_onezero=is_moving_onezero, is_transpose=is_transpose, tile_position=tile_position,
        tile_size=tile_size, perf_mode=perf_mode,
    )  # fmt: skip


def _perf_mode(given: Any) -> isa.matmul_perf_mode:
    if given is None:
        return isa.matmul_perf_mode.none
    if isinstance(given, isa.matmul_perf_mode):
        return given
    return isa.matmul_perf_mode.double_row if "double" in str(given) else isa.matmul_perf_mode.none


def nc_transpose(
    data: NkiTensor,
    *,
    mask: Any = None,
    dtype: Any = None,
    engine: engines = engines.unknown,
    **_options: Any,
) -> NkiTensor:
    """data.T: in PSUM from the Tensor engine, in SBUF from the Vector engine (at most 32 x 32)."""
    rows, columns = data.shape[0], data.size // data.shape[0]
    small = rows <= 32 and columns <= 32
    on_vector = engine is engines.vector or (engine is engines.unknown and small)
    kind = _type(dtype, data.dtype)
    left = Restriction(data.shape, mask)

    def emit(target: NkiTensor) -> None:
        source = left.part(data)
        place = target
        if left.rectangle is not None and data.ndim == 2:
            place = target.within((left.rectangle[1], left.rectangle[0]))
        if on_vector:
            isa.nc_transpose(place, source, engines.vector)
            return
        source = in_sbuf(source)
        if place.buffer is MemoryRegion.psum:
            isa.nc_transpose(place, source, engines.tensor)
            return
        staged = ndarray(place.shape, data.dtype, MemoryRegion.psum)
        isa.nc_transpose(staged, source, engines.tensor)
        isa.tensor_copy(place, staged)

    region = MemoryRegion.sbuf if on_vector else MemoryRegion.psum
    return result((columns, rows), kind, emit, region, left=left)


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

    return _tile(data.shape, _type(dtype, data.dtype), mask, emit)


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


def tensor_reduce(
    op: Any,
    data: NkiTensor,
    axis: int | Sequence[int],
    *,
    mask: Any = None,
    dtype: Any = None,
    negate: bool = False,
    keepdims: bool = False,
    **_options: Any,
) -> NkiTensor:
    """Reduction over axes; free ones on the Vector engine, the partitions on GpSimd."""
    from neuron_tools.nki.language.reduce import keeps_dimensions, reduce_into, reduced_shape

    axes = tuple(sorted(a % data.ndim for a in ((axis,) if isinstance(axis, int) else axis)))
    left = Restriction(data.shape, mask)
    kept = keeps_dimensions(axes, keepdims)

    def emit(target: NkiTensor) -> None:
        reduce_into(left.reduced(target, axes, kept), op, left.part(data), axes, negate)

    return result(reduced_shape(data, axes, kept), _type(dtype, data.dtype), emit, left=left)


def tensor_partition_reduce(
    op: Any, data: NkiTensor, *, mask: Any = None, dtype: Any = None, **_options: Any
) -> NkiTensor:
    """Reduction over the partitions."""
    shape = (1, *data.shape[1:])
    left = Restriction(data.shape, mask)
    return result(
        shape,
        _type(dtype, data.dtype),
        lambda target: isa.tensor_partition_reduce(target, op, left.part(data)),
        left=left,
    )


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
    kind = _type(dtype, promote(data1.dtype, data2.dtype))
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

    return _tile(shape, kind, mask, emit)


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

    return _tile(data.shape, _type(dtype, data.dtype), mask, emit)


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
    kind = _type(dtype, promote(data.dtype, operand1.dtype))

    def emit(target: NkiTensor, left: Restriction) -> None:
        second = left.part(operand1)
        if second.size != target.size:
            second = second.broadcast_to(target.shape)
        isa.scalar_tensor_tensor(
            target, left.part(data), op0, left.part(operand0), op1, second, reverse0, reverse1
        )

    return _tile(data.shape, kind, mask, emit)


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

    return _tile(data.shape, _type(dtype, data.dtype), mask, emit)


def tensor_tensor_scan(
    data0: NkiTensor,
    data1: NkiTensor,
    initial: Any,
    op0: Any,
    op1: Any,
    reverse0: bool = False,
    reverse1: bool = False,
    *,
    dtype: Any = None,
    mask: Any = None,
    **_options: Any,
) -> NkiTensor:
    """result[i] = (data0[i] op0 result[i - 1]) op1 data1[i]."""

    def emit(target: NkiTensor, left: Restriction) -> None:
        isa.tensor_tensor_scan(
            target, left.part(data0), left.part(data1), left.part(initial), op0, op1, reverse0, reverse1
        )

    return _tile(data0.shape, _type(dtype, promote(data0.dtype, data1.dtype)), mask, emit)


def tensor_copy(
    src: NkiTensor,
    *,
    mask: Any = None,
    dtype: Any = None,
    engine: engines = engines.unknown,
    **_options: Any,
) -> NkiTensor:
    """A copy of a tile."""

    def emit(target: NkiTensor, left: Restriction) -> None:
        isa.tensor_copy(target, left.part(src), engine)

    return _tile(src.shape, _type(dtype, src.dtype), mask, emit)


def tensor_copy_dynamic_src(
    src: NkiTensor,
    *,
    mask: Any = None,
    dtype: Any = None,
    engine: engines = engines.unknown,
    **_options: Any,
) -> NkiTensor:
    """A copy of a tile whose place is known only when the kernel runs."""
    return tensor_copy(src, mask=mask, dtype=dtype, engine=engine)


def tensor_copy_dynamic_dst(
    *,
    dst: NkiTensor,
    src: NkiTensor,
    mask: Any = None,
    dtype: Any = None,
    engine: engines = engines.unknown,
    **_options: Any,
) -> None:
    """A copy to a place that is known only when the kernel runs."""
    Restriction(dst.shape, mask).run(dst, lambda part: isa.tensor_copy(part, src, engine))


def tensor_copy_predicated(
    *,
    src: Any,
    dst: NkiTensor,
    predicate: NkiTensor,
    reverse_pred: bool = False,
    mask: Any = None,
    dtype: Any = None,
    **_options: Any,
) -> None:
    """dst = src where the predicate is not zero."""
    left = Restriction(dst.shape, mask)
    left.run(
        dst,
        lambda part: isa.tensor_copy_predicated(part, left.part(src), left.part(predicate), reverse_pred),
    )


def reciprocal(data: NkiTensor, *, dtype: Any = None, mask: Any = None, **_options: Any) -> NkiTensor:
    """1 / data on the Vector engine."""
    return _tile(
        data.shape,
        _type(dtype, data.dtype),
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
    return _tile(extents, as_dtype(dtype), mask, lambda target, left: isa.memset(target, value, engine))


def iota(expr: Any, dtype: Any, *, mask: Any = None, **_options: Any) -> NkiTensor:
    """The values of an index expression, one per element."""
    index = expr if isinstance(expr, Index) else Index((1, 1), (0, 0), int(expr))
    if index.ndim < 2:
        index = pad(index, 2)

    def emit(target: NkiTensor, left: Restriction) -> None:
        limits = left.rectangle or tuple((0, extent) for extent in index.extents)
        pattern, offset, multiplier = _affine_pattern(index, limits)
        isa.iota(target, pattern, offset, multiplier)

    return _tile(index.extents, as_dtype(dtype), mask, emit)


def _affine_pattern(index: Index, limits: Sequence[tuple[int, int]]) -> tuple[list[list[int]], int, int]:
    """(pattern, offset, channel multiplier) of an expression over a rectangle."""
    if index.values is not None:
        raise refuse("this index expression is not affine, which the GpSimd pattern instructions need")
    offset = index.offset + sum(s * start for s, (start, _) in zip(index.coefficients, limits))
    steps = [step if extent > 1 else 0 for step, extent in zip(index.coefficients, index.extents)]
    pattern = [[step, stop - start] for step, (start, stop) in zip(steps[1:], limits[1:])]
    return pattern or [[0, 1]], offset, steps[0]


def affine_select(
    pred: Any,
    on_true_tile: NkiTensor,
    on_false_value: float,
    *,
    mask: Any = None,
    dtype: Any = None,
    **_options: Any,
) -> NkiTensor:
    """Elements where an index condition holds, a constant elsewhere."""
    shape = on_true_tile.shape
    condition = _single_condition(pred, len(shape))

    def emit(target: NkiTensor, left: Restriction) -> None:
        source = left.part(on_true_tile)
        limits = left.rectangle or tuple((0, extent) for extent in shape)
        if condition is None:
            _select_by_mask(target, source, pred, shape, limits, on_false_value)
            return
        if source.buffer is MemoryRegion.psum:
            source = in_sbuf(source)
        pattern, offset, multiplier = _affine_pattern(pad(condition.index, len(shape)), limits)
        names = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
                 "ne": "not_equal"}  # fmt: skip
        place = target
        if place.buffer is MemoryRegion.psum:
            place = ndarray(target.shape, target.dtype, MemoryRegion.sbuf)
        isa.affine_select(
            place, pattern, multiplier, source, on_false_value, names[condition.relation.__name__], offset
        )
        if place is not target:
            isa.tensor_copy(target, place)

    return _tile(shape, _type(dtype, on_true_tile.dtype), mask, emit)


def _single_condition(pred: Any, width: int) -> Condition | None:
    if isinstance(pred, Mask) and len(pred.conditions) == 1 and pred.array is None:
        condition = pred.conditions[0]
        if condition.index.values is None and condition.index.ndim <= width:
            return condition
    return None


def _select_by_mask(
    target: NkiTensor, source: NkiTensor, pred: Any, shape: Sequence[int], limits: Any, other: float
) -> None:
    """Several conditions: one selection after another."""
    if isinstance(pred, (bool, np.bool_)):
        if pred:
            isa.tensor_copy(target, source)
        else:
            isa.memset(target, other)
        return
    if pred.array is not None or any(c.index.values is not None for c in pred.conditions):
        raise refuse("affine_select needs affine conditions joined by &")
    current = source
    for condition in pred.conditions:
        single = affine_select(Mask((condition,)), current, other)
        single.backing  # noqa: B018
        current = single
    isa.tensor_copy(target, current)


def range_select(
    *,
    on_true_tile: NkiTensor,
    comp_op0: Any,
    comp_op1: Any,
    bound0: NkiTensor,
    bound1: NkiTensor,
    reduce_cmd: commands = commands.idle,
    reduce_res: NkiTensor | None = None,
    reduce_op: Any = np.amax,
    range_start: int = 0,
    on_false_value: float = FP32_MINIMUM,
    mask: Any = None,
    dtype: Any = None,
    **_options: Any,
) -> NkiTensor:
    """Elements whose index lies within bounds, a constant elsewhere."""

    def emit(target: NkiTensor, left: Restriction) -> None:
        isa.range_select(
            target, left.part(on_true_tile), comp_op0, comp_op1, left.part(bound0), left.part(bound1),
            reduce_cmd, left.part(reduce_res), reduce_op, range_start, on_false_value,
        )  # fmt: skip

    return _tile(on_true_tile.shape, _type(dtype, on_true_tile.dtype), mask, emit)


def select_reduce(
    *,
    dst: NkiTensor,
    predicate: NkiTensor,
    on_true: NkiTensor,
    on_false: Any,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: commands = commands.idle,
    reduce_op: Any = np.amax,
    reverse_pred: bool = False,
    mask: Any = None,
    dtype: Any = None,
    **_options: Any,
) -> None:
    """dst = on_true where the predicate is not zero, else on_false."""
    left = Restriction(dst.shape, mask)
    left.run(
        dst,
        lambda part: isa.select_reduce(
            part, left.part(predicate), left.part(on_true), left.part(on_false), left.part(reduce_res),
            reduce_cmd, reduce_op, reverse_pred,
        ),
    )  # fmt: skip


def sequence_bounds(*, segment_ids: NkiTensor, dtype: Any = None, **_options: Any) -> NkiTensor:
    """Start and end of the segment of each element."""
    shape = (1, 2, segment_ids.size)
    return result(
        shape, _type(dtype, segment_ids.dtype), lambda target: isa.sequence_bounds(target, segment_ids)
    )


def bn_stats(data: NkiTensor, *, mask: Any = None, dtype: Any = None, **_options: Any) -> NkiTensor:
    """Count, mean and variance x count of even and odd elements."""
    left = Restriction(data.shape, mask)

    def emit(target: NkiTensor) -> None:
        place = target if left.rectangle is None else target.within((left.rectangle[0], (0, 6)))
        isa.bn_stats(place, left.part(data))

    return result((data.shape[0], 6), _type(dtype, data.dtype), emit, left=left)


def bn_aggr(data: NkiTensor, *, mask: Any = None, dtype: Any = None, **_options: Any) -> NkiTensor:
    """Mean and variance from `bn_stats`."""
    left = Restriction(data.shape, mask)

    def emit(target: NkiTensor) -> None:
        place = target if left.rectangle is None else target.within((left.rectangle[0], (0, 2)))
        isa.bn_aggr(place, left.part(data))

    return result((data.shape[0], 2), _type(dtype, data.dtype), emit, left=left)


def local_gather(
    src_buffer: NkiTensor,
    index: NkiTensor,
    num_elem_per_idx: int = 1,
    num_valid_indices: int | None = None,
    *,
    mask: Any = None,
    **_options: Any,
) -> NkiTensor:
    """Gather along the free dimension, each group of 16 partitions by its own indices."""
    partitions = src_buffer.shape[0]
    count = num_valid_indices or 16 * (index.size // index.shape[0])
    shape = (partitions, count * num_elem_per_idx) if num_elem_per_idx == 1 else (
        partitions, count, num_elem_per_idx
    )  # fmt: skip
    return result(
        shape,
        src_buffer.dtype,
        lambda target: isa.local_gather(target, src_buffer, index, num_elem_per_idx, num_valid_indices),
    )


def dma_copy(
    *,
    dst: NkiTensor,
    src: NkiTensor,
    mask: Any = None,
    dst_rmw_op: Any = None,
    oob_mode: bounds = bounds.error,
    dge_mode: dge_modes = dge_modes.unknown,
    **_options: Any,
) -> None:
    """dst = src between HBM and SBUF."""
    left = Restriction(dst.shape, mask)
    left.run(
        dst,
        lambda part: isa.dma_copy(
            part, left.part(src), oob_mode=oob_mode, dge_mode=dge_mode, dst_rmw_op=dst_rmw_op
        ),
    )


def dma_transpose(
    src: NkiTensor,
    *,
    axes: Sequence[int] | None = None,
    mask: Any = None,
    dtype: Any = None,
    **_options: Any,
) -> NkiTensor:
    """src with its first and last dimensions swapped, by DMA."""
    orders = {1: (0,), 2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}
    order = tuple(axes) if axes is not None else orders[src.ndim]
    shape = tuple(src.shape[axis] for axis in order)
    return result(shape, _type(dtype, src.dtype), lambda target: isa.dma_transpose(target, src, order))


def dropout(data: NkiTensor, prob: Any, *, mask: Any = None, dtype: Any = None, **_options: Any) -> NkiTensor:
    """data with elements replaced by 0, each with probability `prob`."""
    return _tile(
        data.shape,
        _type(dtype, data.dtype),
        mask,
        lambda target, left: isa.dropout(target, left.part(data), left.part(prob)),
    )


def max8(*, src: NkiTensor, mask: Any = None, dtype: Any = None, **_options: Any) -> NkiTensor:
    """The 8 largest values of each partition."""
    left = Restriction(src.shape, mask)

    def emit(target: NkiTensor) -> None:
        place = target if left.rectangle is None else target.within((left.rectangle[0], (0, 8)))
        isa.max8(place, left.part(src))

    return result((src.shape[0], 8), _type(dtype, src.dtype), emit, left=left)


def nc_find_index8(
    *, data: NkiTensor, vals: NkiTensor, mask: Any = None, dtype: Any = None, **_options: Any
) -> NkiTensor:
    """Index of the first occurrence of each of 8 values per partition."""
    left = Restriction(data.shape, mask)
    return result(
        (data.shape[0], 8),
        _type(dtype, dtypes.uint32),
        lambda target: isa.nc_find_index8(target, left.part(data), vals),
        left=left,
    )


def nc_match_replace8(
    *,
    data: NkiTensor,
    vals: NkiTensor,
    imm: float,
    dst_idx: NkiTensor | None = None,
    mask: Any = None,
    dtype: Any = None,
    **_options: Any,
) -> NkiTensor:
    """data with the first occurrence of each of 8 values replaced."""
    return _tile(
        data.shape,
        _type(dtype, data.dtype),
        mask,
        lambda target, left: isa.nc_match_replace8(target, left.part(data), vals, imm, dst_idx),
    )


def nc_stream_shuffle(
    src: NkiTensor,
    dst: NkiTensor,
    shuffle_mask: Sequence[int],
    *,
    dtype: Any = None,
    mask: Any = None,
    **_options: Any,
) -> None:
    """Movement between the partitions of each quadrant of 32."""
    left = Restriction(dst.shape, mask)
    left.run(dst, lambda part: isa.nc_stream_shuffle(part, left.part(src), shuffle_mask))


def builtin_custom_op(*_arguments: Any, **_options: Any) -> None:
    """Refused: a custom operator's code runs on the chip only.

    Raises:
        NkiValidationError: Always.
    """
    raise refuse("builtin_custom_op runs a library built for the chip, which cannot run on the host")


class fp32:
    """Constants of fp32: `nisa.fp32.min`."""

    min = FP32_MINIMUM
    max = -FP32_MINIMUM


dma_engine = engines.dma
get_nc_version = isa.get_nc_version
nc_version = isa.nc_version
reduce_cmd = isa.reduce_cmd
oob_mode = isa.oob_mode
dge_mode = isa.dge_mode
engine = isa.engine
tensor_engine = isa.tensor_engine
vector_engine = isa.vector_engine
scalar_engine = isa.scalar_engine
gpsimd_engine = isa.gpsimd_engine
unknown_engine = isa.unknown_engine
core_barrier = isa.core_barrier

NAMES = (
    "activation", "activation_reduce", "affine_select", "bn_aggr", "bn_stats", "builtin_custom_op",
    "core_barrier", "dge_mode", "dma_copy", "dma_engine", "dma_transpose", "dropout", "engine", "fp32",
    "get_nc_version", "gpsimd_engine", "iota", "local_gather", "max8", "memset", "nc_find_index8",
    "nc_match_replace8", "nc_matmul", "nc_stream_shuffle", "nc_transpose", "nc_version", "oob_mode",
    "range_select", "reciprocal", "reduce_cmd", "scalar_engine", "scalar_tensor_tensor", "select_reduce",
    "sequence_bounds", "tensor_copy", "tensor_copy_dynamic_dst", "tensor_copy_dynamic_src",
    "tensor_copy_predicated", "tensor_engine", "tensor_partition_reduce", "tensor_reduce", "tensor_scalar",
    "tensor_scalar_reduce", "tensor_tensor", "tensor_tensor_scan", "unknown_engine", "vector_engine",
)  # fmt: skip
"""What `neuronxcc.nki.isa` offers."""
