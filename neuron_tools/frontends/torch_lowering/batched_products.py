"""Products of several batch axes, kept apart: PyTorch makes one axis of them, which a partitioner cannot cut
where the second of them lies over devices, as heads do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

_aten = torch.ops.aten
_VIEWS = (_aten.view.default, _aten._unsafe_view.default, _aten.reshape.default)


def keep_batch_axes(graph: fx.Graph) -> None:
    """Let `bmm` of views that only join batch axes, and whose results are taken apart again, be `matmul`.

    Args:
        graph: Functional ATen calls; changed.
    """
    for node in list(graph.nodes):
        if node.target is _aten.bmm.default:
            _keep(graph, node)
    graph.eliminate_dead_code()


def _keep(graph: fx.Graph, product: fx.Node) -> None:
    apart = [_before_joining(operand) for operand in product.args]
    if None in apart or not product.users:
        return
    left, right = (_shape(node) for node in apart)
    shape = (*left[:-1], right[-1])
    is_apart = all(user.target in _VIEWS and _shape(user) == shape for user in product.users)
    if left[:-2] != right[:-2] or not is_apart:
        return
    with graph.inserting_before(product):
        whole = graph.call_function(_aten.matmul.default, tuple(apart))
    whole.meta = {**product.meta, "val": next(iter(product.users)).meta["val"]}
    for user in list(product.users):
        user.replace_all_uses_with(whole)


def _before_joining(operand: Any) -> fx.Node | None:
    """What a view that joins all batch axes is of; None where an operand is no such view."""
    if not isinstance(operand, fx.Node) or operand.target not in _VIEWS:
        return None
    before = operand.all_input_nodes[0]
    while before.target is _aten.expand.default and _shape(before) == _shape(before.all_input_nodes[0]):
        before = before.all_input_nodes[0]
    shape = _shape(before)
    return before if len(shape) > 3 and shape[-2:] == _shape(operand)[-2:] else None


def _shape(node: fx.Node) -> tuple[int, ...]:
    shape: Sequence[int] = node.meta["val"].shape
    return tuple(shape)
