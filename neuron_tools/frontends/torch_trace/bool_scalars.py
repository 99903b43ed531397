"""Numbers that are True or False: TorchScript takes them for no number where an operator wants one."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx


def without_bool_scalars(module: fx.GraphModule) -> fx.GraphModule:
    """A graph module whose numbers are 1 and 0 instead, of the same results; itself where it has none."""
    if not any(map(_bool_scalars, module.graph.nodes)):
        return module
    graph = fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    graph.set_codegen(module.graph._codegen)
    for node in graph.nodes:
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
