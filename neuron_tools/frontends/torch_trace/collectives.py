"""Collectives in the values of a traced model: TorchScript lacks the type that PyTorch's have for a group.

Importing this module registers `neuron_tools::all_reduce` and its like, which take its name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from neuron_tools.frontends.torch_lowering.decompositions.collectives import NAMESPACE, OPCODES
from neuron_tools.frontends.torch_lowering.meshes import groups_of
from neuron_tools.frontends.torch_trace.plain_errors import keeps_errors
from neuron_tools.frontends.torch_trace.ranked_values import collective

_library = torch.library.Library("neuron_tools", "FRAGMENT")


def scriptable(module: fx.GraphModule) -> fx.GraphModule:
    """A graph module whose collectives TorchScript can keep; itself where it has none.

    Args:
        module: Of functional collectives, as PyTorch exports them.

    Returns:
        One that computes the same, and waits for each collective where it stands.
    """
    if not any(_name(node) in OPCODES for node in module.graph.nodes):
        return module
    graph = fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    graph.set_codegen(module.graph._codegen)
    for node in graph.nodes:
        if _name(node) in OPCODES:
            node.target = getattr(torch.ops.neuron_tools, _name(node)).default
            node.args = (*node.args[:-1], _group_name(node.args[-1]))
    return fx.GraphModule(module, graph)


def _name(node: fx.Node) -> str:
    """Of a functional collective; empty for other operations."""
    overload = node.target
    is_ours = isinstance(overload, torch._ops.OpOverload) and overload.namespace == NAMESPACE
    return str(overload._schema.name.split("::")[1]) if is_ours else ""


def _group_name(group: Any) -> str:
    return group if isinstance(group, str) else str(group.group_name)


def _implementation(name: str) -> Callable[..., torch.Tensor]:
    functional = getattr(torch.ops, NAMESPACE)

    @keeps_errors
    def run(*arguments: Any) -> torch.Tensor:
        if groups := groups_of(arguments[-1]):
            return collective(name, arguments, groups)
        result: torch.Tensor = functional.wait_tensor(getattr(functional, name)(*arguments))
        return result

    return run


def _register(name: str) -> None:
    schema = str(getattr(getattr(torch.ops, NAMESPACE), name).default._schema)
    _library.define(
        schema.split("::")[1].replace("Any group_name", "str group_name").replace("SymInt", "int")
    )
    _library.impl(name, _implementation(name), "CompositeExplicitAutograd")


if torch.distributed.is_available():
    for _operator in OPCODES:
        _register(_operator)
