"""A recorded graph to a functional FX graph, and to a module: each call keeps who asked for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._decomp import get_decompositions
from torch.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
from torch.utils import _pytree as pytree

from neuron_tools.compiler.hlo import Module
from neuron_tools.frontends.torch_compile.graph_lowering import lower_graph, lower_graph_part
from neuron_tools.frontends.torch_lowering.clean_thread import run_clean
from neuron_tools.frontends.torch_lowering.decompositions.registry import OWN, REPLACED
from neuron_tools.frontends.torch_lowering.fake import FAKE_MODE, fake_tensor
from neuron_tools.frontends.torch_lowering.intrinsics import call_name, operator_name
from neuron_tools.frontends.torch_lowering.layout import StoredTensor
from neuron_tools.frontends.torch_lowering.lowering import PartOfModule
from neuron_tools.frontends.torch_xla.chosen_classes import COMPARED
from neuron_tools.frontends.torch_xla.graph import RecordedGraph, RecordedOperation, ValueNumber
from neuron_tools.frontends.torch_xla.origin import Origin
from neuron_tools.records.program import FrameworkOperation

_ORIGIN, _NAME = "origin", "operator"
_aten = torch.ops.aten
_TAKEN_APART = {**get_decompositions([_aten.gelu, _aten.gelu_backward]), **COMPARED}
"""What a partitioner has no operation for, and torch-mlir spells as a polynomial; and losses."""


def lower_recorded(graph: RecordedGraph, outputs: Sequence[int], name: str) -> Module:
    """The module of a recorded graph.

    Args:
        graph: What was recorded.
        outputs: Numbers of the values that are wanted; arguments that operations wrote are written anyway.
        name: The module's name.
    """
    layouts = [value.layout for value in graph.inputs]
    traced = run_clean(trace_recorded, graph, layouts, outputs)
    kinds, names = _parameters(graph)
    return lower_graph(
        traced, layouts, name, parameter_kinds=kinds, parameter_names=names, describe=described
    )


def lower_recorded_part(
    graph: RecordedGraph, outputs: Sequence[int], name: str, devices: int
) -> PartOfModule:
    """What each device runs of a recorded graph that is partitioned over several.

    Args:
        graph: What was recorded.
        outputs: As in `lower_recorded`.
        name: The module's name.
        devices: How many.

    Returns:
        The module, and how each of the outputs lies over the devices; "" for one that lies as an argument
        does.

    Raises:
        PartitioningError: XLA cannot partition it.
    """
    layouts = [value.layout.row_major for value in graph.inputs]
    traced = run_clean(trace_recorded, graph, layouts, outputs, _TAKEN_APART)
    shardings = {at: value.sharding for at, value in enumerate(graph.inputs) if value.sharding}
    kinds, names = _parameters(graph)
    return lower_graph_part(
        traced,
        layouts,
        name,
        devices,
        shardings,
        parameter_kinds=kinds,
        parameter_names=names,
        describe=described,
    )


def _parameters(graph: RecordedGraph) -> tuple[list[str], list[str]]:
    """Kinds and names of the inputs."""
    kinds = ["weight" if value.is_weight else "input" for value in graph.inputs]
    return kinds, [f"{kind}{index}" for index, kind in enumerate(kinds)]


def trace_recorded(
    graph: RecordedGraph,
    layouts: Sequence[StoredTensor],
    outputs: Sequence[int],
    taken_apart: Mapping[Any, Callable[..., Any]] | None = None,
) -> fx.Graph:
    """Functional ATen calls with one placeholder per input; what is written is copied back at the end.

    Args:
        graph: What was recorded.
        layouts: Of its inputs.
        outputs: Numbers of the values that are wanted.
        taken_apart: Operators that are traced as what these functions do.
    """
    numbers = [value.number for value in graph.inputs]
    inputs = [fake_tensor(layout.sizes, layout.strides, layout.dtype) for layout in layouts]
    return trace_operations(graph.operations, numbers, inputs, outputs, taken_apart)


def trace_operations(
    operations: Sequence[RecordedOperation],
    numbers: Sequence[int],
    inputs: Sequence[Any],
    outputs: Sequence[int],
    taken_apart: Mapping[Any, Callable[..., Any]] | None = None,
) -> fx.Graph:
    """As `trace_recorded`, of some operations.

    Args:
        operations: In order.
        numbers: Of the values that they begin with.
        inputs: These values, as fake tensors.
        outputs: Numbers of the values that are wanted.
        taken_apart: As there.
    """

    def replayed(*inputs: torch.Tensor) -> list[torch.Tensor]:
        values: dict[int, Any] = dict(zip(numbers, inputs))
        for operation in operations:
            _charge(operation.origin, replay(operation, values))
        return [values[number] for number in outputs]

    with FAKE_MODE, torch.no_grad():
        functional = torch.func.functionalize(replayed, remove="mutations")
        traced = make_fx(functional, dict(taken_apart or {}))(*inputs).graph
    traced.eliminate_dead_code()
    return traced


def replay(operation: RecordedOperation, values: dict[int, Any], device: torch.device | None = None) -> str:
    """Call an operation on what is known of its arguments; its name, where its calls have others.

    Args:
        operation: What was recorded.
        values: By number; what it makes is added.
        device: Where it makes tensors; None for that of fake ones.
    """
    leaves = [values[leaf.number] if isinstance(leaf, ValueNumber) else leaf for leaf in operation.leaves]
    if device is not None:
        leaves = [device if isinstance(leaf, torch.device) else leaf for leaf in leaves]
    args, kwargs = pytree.tree_unflatten(leaves, operation.structure)
    # A kernel of the CPU may have laid out what is viewed in another way than tracing foresees.
    target: Any = _aten.reshape.default if operation.target is _aten.view.default else operation.target
    name = ""
    try:
        made = target(*args, **kwargs)
    except RuntimeError:  # tracing sees tensors of the CPU, whose kernels refuse some types of elements
        parts = OWN.get(target) or REPLACED.get(target)
        if parts is None:
            raise
        made, name = parts(*args, **kwargs), operator_name(target)
    results = zip(operation.results, pytree.tree_leaves(made))
    values.update((number, value) for number, value in results if number is not None)
    return name


def _charge(origin: Origin, name: str) -> None:
    """The calls that came into the graph since the last operation are this one's."""
    mode = get_proxy_mode()
    if mode is None:
        return
    for node in reversed(mode.tracer.graph.nodes):
        if _ORIGIN in node.meta:
            break
        node.meta[_ORIGIN], node.meta[_NAME] = origin, name


def described(node: fx.Node) -> FrameworkOperation:
    """The framework row of a call of a traced graph."""
    origin = _origin(node)
    return FrameworkOperation(
        name=node.meta.get(_NAME) or call_name(node),
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
