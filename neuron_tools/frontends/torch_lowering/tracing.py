"""Records what a function does with tensors as a graph of operators, and changes nothing for other threads.

`make_fx` does the same for any function, and while it runs replaces `torch.nn.Module.__call__` and tells
`torch.compile` that this process is being traced: programs call modules and compiled functions on their own
threads while one of their operators is lowered. What is lowered here calls no modules that must be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import (
    ProxyTorchDispatchMode,
    PythonKeyTracer,
    disable_autocast_cache,
    get_proxy_slot,
    track_tensor_tree,
)
from torch.utils import _pytree as pytree


def trace(
    function: Callable[..., Any], tensors: Sequence[torch.Tensor], decompositions: dict[Any, Any]
) -> fx.Graph:
    """The operators that a function calls.

    Args:
        function: Takes the tensors, and returns a structure of tensors and constants.
        tensors: Arguments, fake; one placeholder each.
        decompositions: What stands for an operator, by operator.

    Returns:
        A graph of ATen calls, each with its fake value in `meta["val"]`; it belongs to a module of its own.
    """
    tracer = _new_tracer()
    arguments = [
        tracer.create_proxy("placeholder", f"argument_{index}", (), {}) for index in range(len(tensors))
    ]
    track_tensor_tree(list(tensors), arguments, constant=None, tracer=tracer)
    mode = ProxyTorchDispatchMode(tracer, "real", decomposition_table=decompositions)
    with mode, disable_autocast_cache():
        result = function(*tensors)

    def proxy(tensor: torch.Tensor) -> Any:
        return get_proxy_slot(tensor, tracer, tensor, lambda found: found.proxy)

    proxies = pytree.tree_map_only(torch.Tensor, proxy, result)
    tracer.create_node("output", "output", (tracer.create_arg(proxies),), {})
    return fx.GraphModule(tracer.root, tracer.graph).graph


def _new_tracer() -> PythonKeyTracer:
    tracer = PythonKeyTracer()
    tracer.root = torch.nn.Module()
    tracer.graph = fx.Graph(tracer_cls=PythonKeyTracer)
    tracer.tensor_attrs = {}
    return tracer
