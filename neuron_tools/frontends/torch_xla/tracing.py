"""A recorded graph to a functional FX graph, and to a module: each call keeps who asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
from torch.utils import _pytree as pytree

from neuron_tools.compiler.hlo import Module
from neuron_tools.frontends.torch_compile.graph_lowering import lower_graph
from neuron_tools.frontends.torch_lowering.clean_thread import run_clean
from neuron_tools.frontends.torch_lowering.fake import FAKE_MODE, fake_tensor
from neuron_tools.frontends.torch_lowering.intrinsics import call_name
from neuron_tools.frontends.torch_xla.graph import RecordedGraph, RecordedOperation, ValueNumber
from neuron_tools.frontends.torch_xla.origin import Origin
from neuron_tools.records.program import FrameworkOperation

_ORIGIN = "origin"
_aten = torch.ops.aten


def lower_recorded(graph: RecordedGraph, outputs: Sequence[int], name: str) -> Module:
    """The module of a recorded graph.

    Args:
        graph: What was recorded.
        outputs: Numbers of the values that are wanted; arguments that operations wrote are written anyway.
        name: The module's name.
    """
    traced = run_clean(trace_recorded, graph, outputs)
    kinds = ["weight" if value.is_weight else "input" for value in graph.inputs]
    return lower_graph(
        traced,
        [value.layout for value in graph.inputs],
        name,
        parameter_kinds=kinds,
        parameter_names=[f"{kind}{index}" for index, kind in enumerate(kinds)],
        describe=_described,
    )


def trace_recorded(graph: RecordedGraph, outputs: Sequence[int]) -> fx.Graph:
    """Functional ATen calls with one placeholder per input; what is written is copied back at the end."""

    def replay(*inputs: torch.Tensor) -> list[torch.Tensor]:
        values: dict[int, Any] = {value.number: tensor for value, tensor in zip(graph.inputs, inputs)}
        for operation in graph.operations:
            _replay(operation, values)
            _charge(operation.origin)
        return [values[number] for number in outputs]

    with FAKE_MODE, torch.no_grad():
        layouts = [value.layout for value in graph.inputs]
        inputs = [fake_tensor(layout.sizes, layout.strides, layout.dtype) for layout in layouts]
        traced = make_fx(torch.func.functionalize(replay, remove="mutations"))(*inputs).graph
    traced.eliminate_dead_code()
    return traced


def _replay(operation: RecordedOperation, values: dict[int, Any]) -> None:
    leaves = [values[leaf.number] if isinstance(leaf, ValueNumber) else leaf for leaf in operation.leaves]
    args, kwargs = pytree.tree_unflatten(leaves, operation.structure)
    # A kernel of the CPU may have laid out what is viewed in another way than tracing foresees.
    target = _aten.reshape.default if operation.target is _aten.view.default else operation.target
    made = pytree.tree_leaves(target(*args, **kwargs))
    values.update((number, value) for number, value in zip(operation.results, made) if number is not None)


def _charge(origin: Origin) -> None:
    """The calls that came into the graph since the last operation are this one's."""
    mode = get_proxy_mode()
    if mode is None:
        return
    for node in reversed(mode.tracer.graph.nodes):
        if _ORIGIN in node.meta:
            break
        node.meta[_ORIGIN] = origin


def _described(node: fx.Node) -> FrameworkOperation:
    origin = _origin(node)
    return FrameworkOperation(
        name=call_name(node),
        module_path=origin.module_path,
        module_class=origin.module_class,
        stack=origin.stack,
        backward=origin.backward,
        recomputed=origin.recomputed,
        sequence=origin.sequence,
    )


def _origin(node: fx.Node) -> Origin:
    """A write-back at the end belongs to what made the value that is written."""
    own: Origin | None = node.meta.get(_ORIGIN)
    if own is not None:
        return own
    known = (other.meta.get(_ORIGIN) for other in reversed(node.all_input_nodes))
    return next((origin for origin in known if origin is not None), Origin())
