"""A graph of tensors of the host that a program compiles for the device by its name.

As on TorchNeuron, the device computes it: arguments are copied there, and results stay there unless
`TORCH_NEURONX_RETAIN_DEVICE_MODE=1` asks for them where the arguments are.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from neuron_tools.errors import UsageError

RETAIN, REFUSE = "TORCH_NEURONX_RETAIN_DEVICE_MODE", "TORCH_NEURONX_DYNAMO_DISABLE_CPU_AUTOCOPY"
_HOST, _DEVICE = torch.device("cpu"), torch.device("neuron")


class MovedGraph:
    """What AOTAutograd calls, as it does `CompiledGraph`.

    Args:
        graph: The graph, which `bring_to_device` changed.
        run: Computes its results from a list of its arguments on the device, which it empties.
    """

    def __init__(self, graph: fx.GraphModule, run: Callable[[list[Any]], Any]) -> None:
        self._boxed_call = True
        self._run = run
        placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self._written = [_is_written(node) for node in placeholders]

    def __call__(self, args: list[Any]) -> Any:
        """Run on `args`: tensors of the host and, in dynamic graphs, sizes."""
        given = list(args)
        args[:] = [_moved(value, _DEVICE) for value in given]
        written = [
            (value, moved) for value, moved, is_written in zip(given, args, self._written) if is_written
        ]
        results = self._run(args)
        for value, moved in written:
            value.copy_(moved)
        if os.environ.get(RETAIN) != "1":
            return results
        return pytree.tree_map(lambda value: _moved(value, _HOST), results)


def is_of_host(graph: fx.GraphModule) -> bool:
    """Whether a graph has tensors, and none is on the device."""
    leaves = (leaf for node in graph.graph.nodes for leaf in pytree.tree_leaves(node.meta.get("val")))
    kinds = {leaf.device.type for leaf in leaves if isinstance(leaf, torch.Tensor)}
    return kinds == {"cpu"}


def bring_to_device(graph: fx.GraphModule) -> None:
    """Let a graph make its tensors on the device.

    Raises:
        UsageError: The program wants no copies.
    """
    if os.environ.get(REFUSE) == "1":
        raise UsageError(
            f'The graph\'s tensors are on the CPU, and {REFUSE}=1: move them by to("neuron") before the call.'
        )
    for node in graph.graph.nodes:
        node.args, node.kwargs = pytree.tree_map(
            lambda value: _DEVICE if value == _HOST and isinstance(value, torch.device) else value,
            (node.args, node.kwargs),
        )
    graph.recompile()


def _moved(value: Any, place: torch.device) -> Any:
    return value.to(place) if isinstance(value, torch.Tensor) else value


def _is_written(node: fx.Node) -> bool:
    return any(user.target is torch.ops.aten.copy_.default and user.args[0] is node for user in node.users)
