"""Reductions, scans and statistics, as results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuron_tools.nki import isa
from neuron_tools.nki.dtypes import promote
from neuron_tools.nki.language.results import Restriction, result
from neuron_tools.nki.older.tiles import result_type, tile_result
from neuron_tools.nki.tensor import NkiTensor


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

    return result(reduced_shape(data, axes, kept), result_type(dtype, data.dtype), emit, left=left)


def tensor_partition_reduce(
    op: Any, data: NkiTensor, *, mask: Any = None, dtype: Any = None, **_options: Any
) -> NkiTensor:
    """Reduction over the partitions."""
    shape = (1, *data.shape[1:])
    left = Restriction(data.shape, mask)
    return result(
        shape,
        result_type(dtype, data.dtype),
        lambda target: isa.tensor_partition_reduce(target, op, left.part(data)),
        left=left,
    )


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

    return tile_result(data0.shape, result_type(dtype, promote(data0.dtype, data1.dtype)), mask, emit)


def bn_stats(data: NkiTensor, *, mask: Any = None, dtype: Any = None, **_options: Any) -> NkiTensor:
    """Count, mean and variance x count of even and odd elements."""
    left = Restriction(data.shape, mask)

    def emit(target: NkiTensor) -> None:
        place = target if left.rectangle is None else target.within((left.rectangle[0], (0, 6)))
        isa.bn_stats(place, left.part(data))

    return result((data.shape[0], 6), result_type(dtype, data.dtype), emit, left=left)


def bn_aggr(data: NkiTensor, *, mask: Any = None, dtype: Any = None, **_options: Any) -> NkiTensor:
    """Mean and variance from `bn_stats`."""
    left = Restriction(data.shape, mask)

    def emit(target: NkiTensor) -> None:
        place = target if left.rectangle is None else target.within((left.rectangle[0], (0, 2)))
        isa.bn_aggr(place, left.part(data))

    return result((data.shape[0], 2), result_type(dtype, data.dtype), emit, left=left)
