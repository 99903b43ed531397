"""`torch_xla._dynamo.dynamo_bridge`: a graph of FX as one that is compiled and runs by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import fx

from neuron_tools.frontends.torch_xla.traced_graph import TracedGraph


def extract_compiled_graph(xla_model: fx.GraphModule, xla_args: Sequence[Any]) -> Callable[..., Any]:
    """A function that does what a graph does, each call as one execution.

    Args:
        xla_model: The graph, of Dynamo, AOTAutograd or `torch.fx.symbolic_trace`; no gradients pass through.
        xla_args: Accepted for compatibility: each call may have arguments of other shapes.
    """
    graph = TracedGraph.of_module(xla_model)
    return lambda *args: graph(list(args))
