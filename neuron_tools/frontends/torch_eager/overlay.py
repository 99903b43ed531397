"""A tensor seen through another one of the same memory: views lead from what was written to what is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.builder import GraphBuilder
from neuron_tools.frontends.torch_lowering.layout import StoredTensor
from neuron_tools.frozen import frozen

_aten = torch.ops.aten


@frozen
class Region:
    """Part of a buffer: where it begins, in elements, and how a tensor lies there."""

    offset: int
    tensor: StoredTensor

    @property
    def is_dense(self) -> bool:
        """Whether the tensor's elements lie one after the other, without gaps, each once."""
        expected = 1
        for extent, stride in reversed(self.extents):
            if stride != expected:
                return False
            expected *= extent
        return expected == math.prod(self.tensor.sizes)

    @property
    def extents(self) -> list[tuple[int, int]]:
        """(extent, stride) from the largest stride to the smallest, without broadcast and unit dimensions."""
        pairs = zip(self.tensor.sizes, self.tensor.strides)
        return sorted(((size, stride) for size, stride in pairs if size > 1 and stride), key=lambda e: -e[1])

    def covers(self, other: Region) -> bool:
        """Whether the two are the same dense stretch of memory, in whatever shapes."""
        count = math.prod(self.tensor.sizes)
        same = self.offset == other.offset and self.tensor.dtype == other.tensor.dtype
        return same and self.is_dense and other.is_dense and count == math.prod(other.tensor.sizes)


@frozen
class Cut:
    """A dense stretch of memory reshaped to `shape` and cut to `starts` and `extents` in each dimension."""

    shape: tuple[int, ...]
    starts: tuple[int, ...]
    extents: tuple[int, ...]


def find_cut(whole: Region, wanted: Region) -> Cut | None:
    """How `wanted` lies in the dense region `whole`; None where it is no rectangle of it."""
    count, rest = math.prod(whole.tensor.sizes), wanted.offset - whole.offset
    if rest < 0 or not whole.is_dense or whole.tensor.dtype != wanted.tensor.dtype:
        return None
    shape, starts, extents = [], [], []
    above = count
    for extent, stride in [*wanted.extents, (1, 1)]:
        if above % stride:
            return None
        shape.append(above // stride)
        starts.append(rest // stride)
        extents.append(extent)
        above, rest = stride, rest % stride
    inside = all(start + extent <= size for size, start, extent in zip(shape, starts, extents))
    return Cut(tuple(shape), tuple(starts), tuple(extents)) if inside else None


def see(builder: GraphBuilder, node: Any, whole: Region, wanted: Region, row: int) -> Any:
    """`wanted` as a value computed from `node`, which holds `whole`; None where no view leads there.

    Args:
        builder: Where views are added.
        node: Has the sizes of `whole.tensor`.
        whole: What is known of the buffer.
        wanted: What is read of it.
        row: Framework row of who reads.
    """
    if whole == wanted:
        return node
    cut = find_cut(whole, wanted)
    if cut is None:
        return None
    order = whole.tensor.storage_order
    if order != tuple(range(len(order))):
        node = builder.call(_aten.permute.default, (node, list(order)), {}, row)
    if cut.extents != cut.shape:
        node = _reshape(builder, node, cut.shape, row)
        for dimension, (start, extent) in enumerate(zip(cut.starts, cut.extents)):
            if extent != cut.shape[dimension]:
                node = builder.call(_aten.slice.Tensor, (node, dimension, start, start + extent), {}, row)
    node = _reshape(builder, node, wanted.tensor.stored_sizes, row)
    return wanted.tensor.from_storage_order(builder, node, row)


def _reshape(builder: GraphBuilder, node: Any, sizes: Sequence[int], row: int) -> Any:
    if tuple(node.meta["val"].shape) == tuple(sizes):
        return node
    return builder.call(_aten.reshape.default, (node, list(sizes)), {}, row)
