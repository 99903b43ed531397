"""Operators in forms that TorchScript traces: it takes True and False for no numbers, and has no `fill`."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

_aten = torch.ops.aten
_FILLS = {_aten.fill.Tensor: _aten.copy.default, _aten.fill.Scalar: _aten.full_like.default}
"""Filling without changing what is filled -> the same by an operator that TorchScript has."""


def in_scripted_forms(module: fx.GraphModule) -> fx.GraphModule:
    """A graph module of the same results that TorchScript traces; itself where it does already."""
    if not any(node.target in _FILLS or _bool_scalars(node) for node in module.graph.nodes):
        return module
    graph = fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    graph.set_codegen(module.graph._codegen)
    for node in graph.nodes:
        node.target = _FILLS.get(node.target, node.target)
        for position, argument in _bool_scalars(node):
            node.update_arg(position, int(argument))
            if _takes_dtype(node) and node.kwargs.get("dtype") is None:
                node.update_kwarg("dtype", node.meta["val"].dtype)
    return fx.GraphModule(module, graph)


def _bool_scalars(node: fx.Node) -> list[tuple[int, Any]]:
    """Arguments that are True or False where the operator takes a number, by position."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return []
    taken = zip(node.target._schema.arguments, node.args)
    return [
        (position, value)
        for position, (argument, value) in enumerate(taken)
        if isinstance(value, bool) and str(argument.type) == "number"
    ]


def _takes_dtype(node: fx.Node) -> bool:
    return any(argument.name == "dtype" for argument in node.target._schema.arguments)
