"""`torch.compile(backend="openxla")` on `xla`: a graph of Dynamo's is compiled and runs by itself.

Dynamo is not imported for it, which would cost every program a second: it is taught when it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from torch import fx

from neuron_tools.frontends.torch_xla.tensor import XlaTensor
from neuron_tools.late_import import after_import

Function = TypeVar("Function", bound=Callable[..., Any])
_DECORATORS = "torch._dynamo.decorators"
_whole: list[Callable[..., Any]] = []


def traced_whole(function: Function) -> Function:
    """Let Dynamo take calls of a function of ours, in whose code it does not look, into its graph."""
    _whole.append(function)
    if _DECORATORS in sys.modules:
        _take_whole()
    return function


def install() -> None:
    """Teach Dynamo the tensors and PyTorch's back end, now or once they are imported."""
    after_import("torch._dynamo.config", _configure)
    after_import(_DECORATORS, _take_whole)
    after_import("torch._functorch.config", _replay_views)
    after_import("torch._dynamo.variables.builder", _take_as_plain_tensors)
    after_import("torch._dynamo.backends.torchxla", _offer_backend)
    after_import("torch._higher_order_ops.while_loop", _take_loops)


def openxla(gm: fx.GraphModule, example_inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """Compile one Dynamo graph, with its gradients, for the device `xla`.

    Args:
        gm: Dynamo's graph.
        example_inputs: Its inputs (fake or real).
        **options: Options of `torch.compile`; none changes what is made.

    Returns:
        A function with the graph's signature, each of whose calls is one execution.
    """
    from neuron_tools.frontends.torch_compile.backend import compile_pair
    from neuron_tools.frontends.torch_xla.traced_graph import TracedGraph

    return compile_pair(
        gm,
        example_inputs,
        lambda pair, kind, graph: TracedGraph(graph, pair.describe(kind, graph), pair.callers),
    )


def _offer_backend() -> None:
    from torch._dynamo.backends import registry

    registry._COMPILER_FNS["openxla"] = openxla
    openxla._tags = ()  # type: ignore[attr-defined]  # the registry's own mark


def _take_whole() -> None:
    from torch._dynamo import decorators

    decorators.allow_in_graph(_whole)


def _configure() -> None:
    """As PyTorch/XLA does: a graph for each shape and each number, since the device's graphs have one."""
    from torch._dynamo import config

    config.automatic_dynamic_shapes = False
    config.specialize_float = True


def _replay_views() -> None:
    """As PyTorch/XLA does: its tensors have no strides by which another tensor could be viewed."""
    from torch._functorch import config

    config.view_replay_for_aliased_outputs = True


def _take_loops() -> None:
    """Let `torch._higher_order_ops.while_loop` be a loop of the program."""
    from torch._higher_order_ops.while_loop import while_loop_op, while_loop_stack_output_op

    from neuron_tools.frontends.torch_xla import repeating

    while_loop_op.py_impl(XlaTensor)(repeating.while_loop_of_graphs)
    while_loop_stack_output_op.py_impl(XlaTensor)(repeating.refuse_gradients)


def _take_as_plain_tensors() -> None:
    """Let Dynamo take tensors of the device for plain ones: they are wrappers only to record operations."""
    from torch._dynamo.variables import builder

    of_subclass, variables = builder.infer_subclass_type, builder.VariableBuilder
    for trace_numpy in (True, False):
        variables._type_dispatch_impl(trace_numpy)[XlaTensor] = variables.wrap_tensor
    builder.infer_subclass_type = lambda value: None if type(value) is XlaTensor else of_subclass(value)
