"""Matrix products by group of rows (mixtures of experts).

How many rows each group has is only known when the program runs, and a compiled graph has fixed shapes. So
the rows are put into blocks, each of one group, whose last block is filled up: each block is a product with
its group's weights, and the gradients of those weights are sums over the group's blocks. There are as many
blocks as the groups can need, however the rows are divided among them.
"""

from __future__ import annotations

from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes, replaces
from neuron_tools.frozen import frozen

_aten = torch.ops.aten


_LONGEST_BLOCK, _SHORTEST_BLOCK = 512, 128
"""Rows of a block: as many as a product moves at once, and as many as a tile has partitions."""


@frozen
class _Blocks:
    """Blocks of rows of one group each.

    Attributes:
        group: Whose weights each block meets, [blocks].
        rows: Row at each place of the blocks, [blocks * size]; any, where a block is filled up.
        is_filled: Whether the place has a row of the block's group, [blocks * size].
        place: Place of each row in the blocks, [count].
        is_grouped: Whether each row belongs to a group, [count].
    """

    group: Any
    rows: Any
    is_filled: Any
    place: Any
    is_grouped: Any

    @classmethod
    def of(cls, ends: Any, count: int) -> _Blocks:
        """The blocks of `count` rows; `ends` [groups] are the groups' cumulative counts."""
        groups = ends.shape[0]
        size = _block_size(count, groups)
        starts = torch.cat([torch.zeros([1], dtype=ends.dtype), _aten.slice(ends, 0, 0, groups - 1)])
        needed = (ends - starts + (size - 1)) // size
        last = torch.cumsum(needed, 0, dtype=ends.dtype)
        first = last - needed
        block = torch.arange(min((count + groups * (size - 1)) // size, count), dtype=ends.dtype)
        row = torch.arange(count, dtype=ends.dtype)
        group = _group_of(last, block)
        begin = starts.index_select(0, group) + (block - first.index_select(0, group)) * size
        rows = begin.unsqueeze(1) + torch.arange(size, dtype=ends.dtype)
        own = _group_of(ends, row)
        place = first.index_select(0, own) * size + row - starts.index_select(0, own)
        is_filled = rows < ends.index_select(0, group).unsqueeze(1)
        return cls(
            group, rows.flatten().clamp(max=count - 1), is_filled.flatten(),
            place.clamp(0, rows.numel() - 1), row < ends[groups - 1],
        )  # fmt: skip

    def apart(self, rows: Any) -> Any:
        """Rows at all places [blocks * size, width] as [blocks, size, width]."""
        return rows.reshape(self.group.shape[0], -1, rows.shape[1])


def _block_size(count: int, groups: int) -> int:
    """About the rows that a group has, so that half of the places are used at least, within limits."""
    share = 1 << max(count // groups, 1).bit_length() - 1
    return min(max(share, _SHORTEST_BLOCK), _LONGEST_BLOCK, count)


def _group_of(ends: Any, places: Any) -> Any:
    """The group that each place is in; the last one for places behind all groups."""
    groups_before = (places.unsqueeze(1) >= ends.unsqueeze(0)).to(ends.dtype).sum(1, dtype=ends.dtype)
    return groups_before.clamp(max=ends.shape[0] - 1)


def _product_of_rows(rows: Any, weights: Any, ends: Any, *, turned: bool = False) -> Any:
    """Each row [count, inner] times its group's weights [groups, inner, outer]; zeros behind the last group.

    Args:
        turned: Whether the weights are [groups, outer, inner].
    """
    count = rows.shape[0]
    if not count:
        return torch.zeros([0, weights.shape[1 if turned else 2]], dtype=rows.dtype)
    blocks = _Blocks.of(ends, count)
    chosen = _aten.index_select(weights, 0, blocks.group)
    placed = blocks.apart(_aten.index_select(rows, 0, blocks.rows))
    product = torch.bmm(placed, chosen.transpose(1, 2) if turned else chosen)
    kept = _aten.index_select(product.flatten(0, 1), 0, blocks.place)
    return torch.where(blocks.is_grouped.unsqueeze(1), kept, torch.zeros([], dtype=kept.dtype))


def _product_of_columns(first: Any, second: Any, ends: Any) -> Any:
    """[groups, rows, columns]: the products over each group's part of the inner dimension."""
    if not second.shape[0]:
        return torch.zeros([ends.shape[0], first.shape[0], second.shape[1]], dtype=second.dtype)
    blocks = _Blocks.of(ends, second.shape[0])
    left, right = (_aten.index_select(each, 0, blocks.rows) for each in (first.transpose(0, 1), second))
    is_filled = blocks.is_filled.unsqueeze(1).to(second.dtype)
    if left.shape[1] < right.shape[1]:
        left = left * is_filled
    else:
        right = right * is_filled
    # The sums of a product are fp32, whatever it multiplies: so are those over the blocks.
    parts = torch.bmm(blocks.apart(left).float().transpose(1, 2), blocks.apart(right).float())
    sums = torch.zeros([ends.shape[0], *parts.shape[1:]])
    return _aten.index_add(sums, 0, blocks.group, parts).to(second.dtype)


@decomposes(_aten._grouped_mm.default)
def _grouped_product(
    first: Any, second: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Any:
    if first.dim() == 2 and second.dim() == 3:
        result = _product_of_rows(first, second, offs)
    elif first.dim() == 3 and second.dim() == 2:
        product = _product_of_rows(second.transpose(0, 1), first, offs, turned=True)
        result = product.transpose(0, 1)
    elif first.dim() == 2:
        result = _product_of_columns(first, second, offs)
    else:
        result = torch.bmm(first, second)
    result = result if bias is None else result + bias
    return result if out_dtype is None else result.to(out_dtype)


@replaces("transformers::grouped_mm_fallback")
def _grouped_rows(rows: Any, weight: Any, offs: Any) -> Any:
    return _product_of_rows(rows, weight, offs)


@replaces("transformers::grouped_mm_fallback_backward")
def _grouped_rows_backward(rows: Any, weight: Any, offs: Any, gradient: Any) -> tuple[Any, Any]:
    return (
        _product_of_rows(gradient, weight, offs, turned=True),
        _product_of_columns(rows.transpose(0, 1), gradient, offs),
    )
