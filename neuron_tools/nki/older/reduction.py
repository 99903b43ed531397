"""Reductions, scans and statistics, as results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuron_tools.nki import isa
from neuron_tools.nki.language.results import Restriction, result
from neuron_tools.nki.older.results import result_type, returned
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
) -> NkiTensor:
    """Reduction over axes; free ones on the Vector engine, the partitions on GpSimd."""
    from neuron_tools.nki.language.reduce import keeps_dimensions, reduce_into, reduced_shape

    axes = tuple(sorted(a % data.ndim for a in ((axis,) if isinstance(axis, int) else axis)))
    left = Restriction(data.shape, mask)
    kept = keeps_dimensions(axes, keepdims)

    def emit(target: NkiTensor) -> None:
        reduce_into(left.reduced(target, axes, kept), op, left.part(data), axes, negate)

    return result(reduced_shape(data, axes, kept), result_type(dtype, data.dtype), emit, left=left)


def tensor_partition_reduce(op: Any, data: NkiTensor, *, mask: Any = None, dtype: Any = None) -> NkiTensor:
    """Reduction over the partitions."""
    shape = (1, *data.shape[1:])
    left = Restriction(data.shape, mask)
    return result(
        shape,
        result_type(dtype, data.dtype),
        lambda target: isa.tensor_partition_reduce(target, op, left.part(data)),
        left=left,
    )


tensor_tensor_scan = returned(isa.tensor_tensor_scan, "data0", "data1")
bn_stats = returned(isa.bn_stats, "data", columns=6)
bn_aggr = returned(isa.bn_aggr, "data", columns=2)
