"""Matrix products by group of rows (mixtures of experts): one product over all groups, others masked out.

How many rows each group has is only known when the program runs, and a compiled graph has fixed shapes: every
group's weights meet every row, with zeros where the row belongs to another group.
"""

from __future__ import annotations

from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes, replaces

_aten = torch.ops.aten


def _membership(ends: Any, count: int, dtype: torch.dtype) -> Any:
    """[groups, count]: 1 where an element belongs to the group; `ends` [groups] are cumulative counts."""
    place = torch.arange(count).unsqueeze(0)
    before = (place < ends.unsqueeze(1)).to(dtype)
    zeros = torch.zeros([1, count], dtype=dtype)
    return before - torch.cat([zeros, _aten.slice(before, 0, 0, ends.shape[0] - 1)], 0)


def _rows_by_group(rows: Any, ends: Any) -> Any:
    """[count, groups, width]: each row [count, width] in its own group's place, zeros elsewhere."""
    member = _membership(ends, rows.shape[0], rows.dtype).transpose(0, 1)
    return rows.unsqueeze(1) * member.unsqueeze(2)


def _product_of_rows(rows: Any, weights: Any, ends: Any) -> Any:
    """Each row [count, inner] times its group's weights [groups, inner, outer]."""
    spread = _rows_by_group(rows, ends)
    return torch.mm(spread.flatten(1), weights.flatten(0, 1))


def _product_of_columns(first: Any, second: Any, ends: Any) -> Any:
    """[groups, rows, columns]: the products over each group's part of the inner dimension."""
    spread = _rows_by_group(first.transpose(0, 1), ends)
    product = torch.mm(spread.flatten(1).transpose(0, 1), second)
    return product.reshape(ends.shape[0], first.shape[0], second.shape[1])


@decomposes(_aten._grouped_mm.default)
def _grouped_product(
    first: Any, second: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Any:
    if first.dim() == 2 and second.dim() == 3:
        result = _product_of_rows(first, second, offs)
    elif first.dim() == 3 and second.dim() == 2:
        turned = _product_of_rows(second.transpose(0, 1), first.transpose(1, 2), offs)
        result = turned.transpose(0, 1)
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
        _product_of_rows(gradient, weight.transpose(1, 2), offs),
        _product_of_columns(rows.transpose(0, 1), gradient, offs),
    )
