"""Index tiles and selections by position, as results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from neuron_tools.nki import isa
from neuron_tools.nki.dtypes import as_dtype
from neuron_tools.nki.index import Condition, Index, Mask, pad
from neuron_tools.nki.isa.enums import reduce_cmd as commands
from neuron_tools.nki.isa.issue import refuse
from neuron_tools.nki.language.creation import ndarray
from neuron_tools.nki.language.movement import in_sbuf
from neuron_tools.nki.language.results import Restriction, result
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.older.results import in_place, result_type, returned, tile_result
from neuron_tools.nki.tensor import NkiTensor


def iota(expr: Any, dtype: Any, *, mask: Any = None) -> NkiTensor:
    """The values of an index expression, one per element."""
    index = expr if isinstance(expr, Index) else Index((1, 1), (0, 0), int(expr))
    if index.ndim < 2:
        index = pad(index, 2)

    def emit(target: NkiTensor, left: Restriction) -> None:
        limits = left.rectangle or tuple((0, extent) for extent in index.extents)
        pattern, offset, multiplier = _affine_pattern(index, limits)
        isa.iota(target, pattern, offset, multiplier)

    return tile_result(index.extents, as_dtype(dtype), mask, emit)


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

    return tile_result(shape, result_type(dtype, on_true_tile.dtype), mask, emit)


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
        single.backing  # noqa: B018  # makes it
        current = single
    isa.tensor_copy(target, current)


range_select = returned(isa.range_select, "on_true_tile", reduce_cmd=commands.idle)
select_reduce = in_place(isa.select_reduce)


def sequence_bounds(*, segment_ids: NkiTensor, dtype: Any = None) -> NkiTensor:
    """Start and end of the segment of each element."""
    shape = (1, 2, segment_ids.size)
    return result(
        shape, result_type(dtype, segment_ids.dtype), lambda target: isa.sequence_bounds(target, segment_ids)
    )
