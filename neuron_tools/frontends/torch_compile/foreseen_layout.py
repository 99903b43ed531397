"""Lays results of a graph's operators out as tracing foresaw them.

Tracing leaves out copies that it foresees to be in vain, such as `contiguous()` of what should be contiguous,
and records views where a view should do. CPU kernels, which compute the values, choose their own layouts (a
convolution's are channels last), and some do not look: the gradient of group normalisation takes both of its
tensors to be laid out alike, and is wrong where they are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx


def keep_foreseen_layouts(graph: fx.Graph) -> None:
    """Follow each operator that makes a new tensor by what lays it out as its traced value is."""
    for node in list(graph.nodes):
        order = memory_order(node)
        if order is not None:
            _follow(graph, node, order)


def memory_order(node: fx.Node) -> tuple[int, ...] | None:
    """The dimensions of a new tensor that an operator makes, the outermost in memory first.

    Args:
        node: With its traced value.

    Returns:
        None for views and changed arguments, tensors with gaps or without dimensions, and sizes that only
        values tell.
    """
    value = node.meta.get("val")
    is_strided = isinstance(value, torch.Tensor) and value.layout is torch.strided
    return _order(value) if is_strided and _is_made(node) else None


def laid_out(tensor: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
    """The tensor with its dimensions in memory in this order without gaps; itself where it is so.

    Args:
        tensor: Of any shape and strides.
        order: A permutation of its dimensions, the outermost first.
    """
    strides = _dense_strides(tensor.shape, order)
    if tensor.stride() == strides:
        return tensor
    ordered = tensor.permute(order)
    if ordered.is_contiguous():  # only strides of dimensions of one element differ, but kernels look at them
        return tensor.as_strided(tensor.shape, strides)
    return ordered.contiguous().permute([order.index(dimension) for dimension in range(tensor.ndim)])


def _dense_strides(sizes: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    strides, inner = [0] * len(order), 1
    for dimension in reversed(order):
        strides[dimension] = inner
        inner *= sizes[dimension]
    return tuple(strides)


def _follow(graph: fx.Graph, node: fx.Node, order: tuple[int, ...]) -> None:
    users = list(node.users)
    with graph.inserting_after(node):
        after = graph.call_function(laid_out, (node, order))
    for user in users:
        user.replace_input_with(node, after)


def _is_made(node: fx.Node) -> bool:
    """Whether the node is a new tensor of an operator: neither a view nor a changed argument."""
    source: Any = node.args[0] if _is_item(node) else node
    target = source.target if isinstance(source, fx.Node) else None
    return isinstance(target, torch._ops.OpOverload) and not any(
        result.alias_info for result in target._schema.returns
    )


def _is_item(node: fx.Node) -> bool:
    return getattr(node.target, "__name__", "") == "getitem"


def _order(value: torch.Tensor) -> tuple[int, ...] | None:
    """Dimensions by falling stride, those of one element innermost; None for gaps, no dimensions, and sizes
    that only values tell.
    """
    sizes, strides = _hints(value.shape), _hints(value.stride())
    if not sizes or 0 in sizes or len(sizes) + len(strides) < 2 * value.ndim:
        return None
    order = tuple(sorted(range(value.ndim), key=lambda dimension: (-strides[dimension], -sizes[dimension])))
    dense = _dense_strides(sizes, order)
    gaps = any(size != 1 and stride != own for size, stride, own in zip(sizes, strides, dense, strict=True))
    return None if gaps else order


def _hints(numbers: Sequence[Any]) -> list[int]:
    """Sizes or strides; of symbolic ones those of the traced example, where it has them."""
    hints = (each.node.hint if isinstance(each, torch.SymInt) else each for each in numbers)
    return [int(hint) for hint in hints if hint is not None]
