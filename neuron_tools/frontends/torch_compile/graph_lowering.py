"""A whole FX graph of ATen operators, with the shapes of one call, to an `hlo.Module`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from neuron_tools.compiler.hlo import Module
from neuron_tools.frontends.torch_compile.foreseen_layout import memory_order
from neuron_tools.frontends.torch_compile.provenance import ModuleRoot, framework_operation
from neuron_tools.frontends.torch_lowering.builder import GraphBuilder
from neuron_tools.frontends.torch_lowering.clean_thread import run_clean
from neuron_tools.frontends.torch_lowering.layout import StoredTensor
from neuron_tools.frontends.torch_lowering.lowering import (
    PartOfModule,
    PortableModule,
    lower,
    lower_part,
    lower_to_text,
)
from neuron_tools.frontends.torch_lowering.pairs import value_of
from neuron_tools.frozen import frozen
from neuron_tools.records.program import FrameworkOperation


def lower_graph(
    graph: fx.Graph,
    arguments: Sequence[Any],
    name: str,
    *,
    root: ModuleRoot | None = None,
    backward: bool = False,
    parameter_kinds: Sequence[str] = (),
    parameter_names: Sequence[str] = (),
    describe: Callable[[fx.Node], FrameworkOperation] | None = None,
) -> Module:
    """Lower a graph for the sizes of one call.

    Args:
        graph: Placeholders, ATen calls and an output, as AOTAutograd makes them.
        arguments: One per placeholder: `StoredTensor`, or a number for a symbolic size.
        name: The module's name.
        root: What module paths are relative to.
        backward: Whether it is a backward graph.
        parameter_kinds: "input" or "weight" per placeholder; empty means all inputs.
        parameter_names: A name per placeholder; empty means the placeholders' own.
        describe: Makes a call's framework row; None: from what Dynamo and AOTAutograd noted on it.

    Returns:
        A module with one framework row per call of the graph. What cannot be lowered is a `custom_call`,
        named in `warnings`. A result that is a view is its base, which stays in memory; that of an
        elementwise operator has its dimensions in the order in which they lie there. Results that are
        parameters, or views of them, are left out: they do not move.
    """
    calls = _operators(graph)
    rows = {node: row for row, node in enumerate(calls)}
    framework = [describe(node) for node in calls] if describe else framework_rows(graph, root, backward)
    call = _GraphCall(graph, rows, arguments, parameter_kinds, parameter_names)
    return run_clean(lower, lambda builder: _Walker(call, builder, bases=True).walk(), framework, name)


def lower_graph_part(
    graph: fx.Graph,
    arguments: Sequence[Any],
    name: str,
    devices: int,
    shardings: Mapping[int, str],
    *,
    parameter_kinds: Sequence[str] = (),
    parameter_names: Sequence[str] = (),
    describe: Callable[[fx.Node], FrameworkOperation],
) -> PartOfModule:
    """Lower a graph partitioned over devices: what each of them runs.

    Args:
        graph: As in `lower_graph`.
        arguments: Likewise; row-major.
        name: Likewise.
        devices: How many.
        shardings: How placeholders lie over them, in XLA's text; those that are not named are whole on each.
        parameter_kinds: As in `lower_graph`.
        parameter_names: Likewise.
        describe: Likewise.

    Returns:
        The module, and how each output of the graph lies: "" for one that is a parameter or no tensor.

    Raises:
        PartitioningError: XLA cannot partition it, or jaxlib is absent, of which that is a part.
    """
    calls = _operators(graph)
    call = _GraphCall(
        graph, {node: row for row, node in enumerate(calls)}, arguments, parameter_kinds, parameter_names
    )
    outputs: list[int] = []

    def build(builder: GraphBuilder) -> list[fx.Node]:
        made, outputs[:] = _outputs_of(_Walker(call, builder))
        return made

    framework = [describe(node) for node in calls]
    part = run_clean(lower_part, build, framework, name, devices, shardings)
    return replace(part, results=tuple(part.results[at] if at >= 0 else "" for at in outputs))


def framework_rows(graph: fx.Graph, root: ModuleRoot | None, backward: bool) -> list[FrameworkOperation]:
    """The framework rows of a graph's module, from what Dynamo and AOTAutograd noted on its calls.

    Args:
        graph: As in `lower_graph`.
        root: What module paths are relative to.
        backward: Whether it is a backward graph.
    """
    place = root or ModuleRoot()
    return [framework_operation(node, place, backward) for node in _operators(graph)]


def unlowered_calls(graph: fx.Graph, arguments: Sequence[Any]) -> set[fx.Node]:
    """The calls of a graph that have no native lowering for the sizes of one call.

    Args:
        graph: As in `lower_graph`.
        arguments: Likewise.
    """
    calls = _operators(graph)
    module = lower_graph(graph, arguments, "graph")
    return {
        calls[row]
        for operation in module.operations
        if operation.opcode == "custom_call" and operation.attributes.get("unlowered")
        for row in operation.framework
    }


def graph_text(graph: fx.Graph, arguments: Sequence[Any]) -> PortableModule:
    """The StableHLO text of a graph for the sizes of one call; `main` takes the tensors among the arguments.

    Args:
        graph: As in `lower_graph`.
        arguments: Likewise.

    Returns:
        The text; its `results` are for each output of the graph, flattened, the position among `main`'s
        results, or -1 where the output is a parameter, empty or no tensor.
    """
    calls = _operators(graph)
    call = _GraphCall(graph, {node: row for row, node in enumerate(calls)}, arguments, (), ())
    return run_clean(_to_text, call)


def _to_text(call: _GraphCall) -> PortableModule:
    outputs: list[int] = []

    def build(builder: GraphBuilder) -> list[fx.Node]:
        made, outputs[:] = _outputs_of(_Walker(call, builder))
        return made

    portable = lower_to_text(build)
    positions = tuple(portable.results[index] if index >= 0 else -1 for index in outputs)
    return replace(portable, results=positions)


def _outputs_of(walker: _Walker) -> tuple[list[fx.Node], list[int]]:
    """The results of a walk, and for each output of the graph its position among these; -1: it is none."""
    made = walker.walk()
    return made, [made.index(leaf) if leaf in made else -1 for leaf in walker.outputs]


@frozen
class _GraphCall:
    """One call of a graph: framework row per operator node; argument, kind and name per placeholder."""

    graph: fx.Graph
    rows: Mapping[fx.Node, int]
    arguments: Sequence[Any]
    kinds: Sequence[str]
    names: Sequence[str]


class _Walker:
    """Follows a graph with the concrete sizes of a call; with `bases`, views are returned as their bases."""

    def __init__(self, call: _GraphCall, builder: GraphBuilder, *, bases: bool = False) -> None:
        self._bases = bases
        self._graph, self._rows = call.graph, call.rows
        self._call_arguments = call
        self._builder = builder
        self._values: dict[fx.Node, Any] = {}
        self._turned: dict[fx.Node, tuple[StoredTensor, fx.Node]] = {}
        self.outputs: list[Any] = []

    def walk(self) -> list[fx.Node]:
        """Add parameters and calls to the builder; returns the results that are not parameters."""
        placeholders = [node for node in self._graph.nodes if node.op == "placeholder"]
        call = self._call_arguments
        for index, (node, argument) in enumerate(zip(placeholders, call.arguments)):
            if isinstance(argument, StoredTensor):
                kind = call.kinds[index] if call.kinds else "input"
                name = call.names[index] if call.names else node.name
                stored, parameters = argument, self._builder.parameters
                argument = stored.place(self._builder, name, kind, self._first_user_row(node))
                if argument is not parameters[-1] and stored.is_dense:
                    self._turned[argument] = stored, parameters[-1]
            self._values[node] = argument
        return self._follow()

    def _follow(self) -> list[fx.Node]:
        for node in self._graph.nodes:
            if node.op == "call_function":
                self._values[node] = self._call(node)
            elif node.op == "get_attr":
                self._values[node] = self._attribute(node)
            elif node.op == "output":
                self.outputs = _flat(fx.node.map_arg(node.args[0], self._result))
        made = [leaf for leaf in [*self.outputs, *self._builder.written] if isinstance(leaf, fx.Node)]
        return [node for node in dict.fromkeys(made) if node.op != "placeholder" and node.meta["val"].numel()]

    def _result(self, node: fx.Node) -> Any:
        """The value of an output of the graph.

        Where outputs are memory, what an elementwise operator made has its dimensions in the order in which
        they lie there: that of its input, often a product whose heads were moved forward, so nothing moves.
        """
        base = _base_of(node) if self._bases else node
        value = self._values[base]
        order = memory_order(base) if self._bases and _is_elementwise(base) else None
        if order is None or order == tuple(range(len(order))) or not isinstance(value, fx.Node):
            return value
        return self._builder.call(torch.ops.aten.permute.default, (value, list(order)), {}, self._rows[base])

    def _call(self, node: fx.Node) -> Any:
        args, kwargs = fx.node.map_arg((tuple(node.args), dict(node.kwargs)), self._values.__getitem__)
        if node in self._rows:
            return self._operator(node, args, kwargs)
        if _has_tensors(args):
            args = fx.node.map_arg(args, value_of)
        target: Any = node.target
        return target(*args, **kwargs)

    def _operator(self, node: fx.Node, args: Any, kwargs: Any) -> Any:
        target: Any = node.target
        expected = _concrete(node.meta.get("val"))
        result = self._builder.call(target, args, kwargs, self._rows[node], expected)
        if _writes_first(target) and isinstance(node.args[0], fx.Node):
            self._values[node.args[0]] = self._rewritten(node, self._values[node.args[0]], result)
        return result

    def _rewritten(self, node: fx.Node, before: Any, result: Any) -> Any:
        """The new value of an argument that an operator writes: in the argument's memory, never another's."""
        builder = self._builder
        if result in builder.parameters and result is not before:
            result = builder.copy(result, self._rows[node])
            builder.write(result)
        if before in self._turned:
            self._put_back(result, *self._turned.setdefault(result, self._turned[before]), self._rows[node])
        builder.take_over(result, builder.homes.get(before, before))
        return result

    def _put_back(self, value: fx.Node, stored: StoredTensor, parameter: fx.Node, row: int) -> None:
        """Write the new value of an argument whose dimensions lie in another order in that order."""
        builder = self._builder
        in_order = builder.call(torch.ops.aten.permute.default, (value, list(stored.storage_order)), {}, row)
        builder.written = [each for each in builder.written if each is not value]
        builder.write(in_order)
        builder.take_over(in_order, parameter)

    def _attribute(self, node: fx.Node) -> Any:
        value = _attribute_of(self._graph.owning_module, str(node.target))
        if not isinstance(value, torch.Tensor):
            return value
        return self._builder.constant(value, str(node.target), self._first_user_row(node))

    def _first_user_row(self, node: fx.Node) -> int:
        return next((self._rows[user] for user in node.users if user in self._rows), 0)


def _base_of(node: fx.Node) -> fx.Node:
    """What a node is a view of, through all views."""
    while node.op == "call_function" and node.args and isinstance(node.args[0], fx.Node):
        maker = node.args[0] if node.target is operator.getitem else node
        is_view = isinstance(maker.target, torch._ops.OpOverload) and maker.target.is_view
        if not is_view or not isinstance(maker.args[0], fx.Node):
            break
        node = maker.args[0]
    return node


def _flat(structure: Any) -> list[Any]:
    """Leaves of a structure; None is one of them."""
    leaves: list[Any] = pytree.tree_leaves(structure, is_leaf=lambda leaf: leaf is None)
    return leaves


def _operators(graph: fx.Graph) -> list[fx.Node]:
    return [node for node in graph.nodes if node.op == "call_function" and _is_operator(node)]


def _is_operator(node: fx.Node) -> bool:
    """An ATen (or higher-order) call, as opposed to `getitem` and arithmetic on sizes."""
    if node.target is operator.getitem or not isinstance(node.target, torch._ops.OperatorBase):
        return False
    return not isinstance(
        node.meta.get("val"), (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)
    )


def _is_elementwise(node: fx.Node) -> bool:
    """Whether a call makes each element of a new tensor of one element of each argument."""
    target: Any = node.target
    is_pure = isinstance(target, torch._ops.OpOverload) and not target._schema.is_mutable
    return is_pure and (torch.Tag.pointwise in target.tags or target is torch.ops.aten._to_copy.default)


def _has_tensors(args: Any) -> bool:
    leaves = pytree.tree_leaves(args)
    return any(isinstance(leaf, fx.Node) for leaf in leaves) and not isinstance(args[0], (tuple, list))


def _writes_first(target: Any) -> bool:
    return isinstance(target, torch._ops.OpOverload) and target._schema.name.endswith("_")


def _concrete(value: Any) -> Any:
    """Tensors of a node's recorded value where their sizes are plain numbers, else None."""
    leaves = [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]
    symbolic = any(isinstance(extent, torch.SymInt) for leaf in leaves for extent in leaf.shape)
    return None if symbolic or not leaves else value


def _attribute_of(module: Any, target: str) -> Any:
    for part in target.split("."):
        module = getattr(module, part)
    return module
