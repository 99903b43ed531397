"""A graph with sizes that only values tell runs in parts; between them the host reads the values.

Dynamo makes such graphs where it is told to capture numbers and shapes that depend on values. An operator
that makes one runs by itself, as in eager code; what stands between two of them is one execution.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch.fx.graph import _BoxedCodeGen
from torch.utils import _pytree as pytree

from neuron_tools.frontends.torch_compile.compiled_graph import CompiledGraph
from neuron_tools.frontends.torch_compile.provenance import ModuleRoot
from neuron_tools.frozen import frozen

Run = Callable[[list[Any], ModuleRoot | None], Any]
"""Runs a part on its arguments, for the module that called the graph."""


@frozen
class Step:
    """One part of a graph.

    Attributes:
        run: Computes its results, a tuple, from a list of its arguments, which it empties.
        arguments: The nodes of the graph that it takes.
        results: The nodes that it makes and that are used elsewhere.
        last_used: The nodes that nothing needs afterwards.
    """

    run: Run
    arguments: tuple[fx.Node, ...]
    results: tuple[fx.Node, ...]
    last_used: tuple[fx.Node, ...]


class PartedGraph:
    """What AOTAutograd calls, as it does `CompiledGraph`.

    Args:
        graph: The graph.
        compile_part: Makes the execution of a part; told its graph and its place among all parts.
        calling_module: Tells which module runs the graph, where that is recorded.
    """

    def __init__(
        self,
        graph: fx.GraphModule,
        compile_part: Callable[[fx.GraphModule, int], CompiledGraph],
        calling_module: Callable[[], ModuleRoot | None],
    ) -> None:
        self._boxed_call = True
        self._calling_module = calling_module
        self._placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        (output,) = (node for node in graph.graph.nodes if node.op == "output")
        self._output = output.args[0]
        self._steps = _steps(graph, compile_part, output)

    def __call__(self, args: list[Any]) -> Any:
        """Run on `args`: tensors and, in dynamic graphs, sizes."""
        caller = self._calling_module()
        values = dict(zip(self._placeholders, args, strict=True))
        args.clear()
        for step in self._steps:
            arguments = [values[node] for node in step.arguments]
            for node in step.last_used:
                values.pop(node, None)
            values.update(zip(step.results, step.run(arguments, caller), strict=True))
        return fx.node.map_arg(self._output, values.__getitem__)


def depends_on_values(graph: fx.Graph) -> bool:
    """Whether an operator of the graph makes a number or a size that only values tell."""
    return any(_makes_size(node) for node in graph.nodes)


def _makes_size(node: fx.Node) -> bool:
    return node.op == "call_function" and bool(node.meta.get("unbacked_bindings"))


def _steps(
    graph: fx.GraphModule, compile_part: Callable[[fx.GraphModule, int], CompiledGraph], output: fx.Node
) -> tuple[Step, ...]:
    parts = _parts(graph.graph)
    needed = [set(output.all_input_nodes)]
    for part in reversed(parts):
        needed.append(needed[-1] | set(_arguments(part)))
    steps = []
    for place, (part, later) in enumerate(zip(parts, needed[-2::-1], strict=True)):
        arguments, results = _arguments(part), tuple(node for node in part if node in later)
        steps.append(
            Step(
                run=_runner(_graph_of(graph, part, arguments, results), place, compile_part),
                arguments=arguments,
                results=results,
                last_used=tuple(node for node in arguments if node not in later),
            )
        )
    return tuple(steps)


def _parts(graph: fx.Graph) -> list[list[fx.Node]]:
    """The calls in their order, apart at each that makes a size; items of a result stay with what made it."""
    parts: list[list[fx.Node]] = [[]]
    home: dict[fx.Node, list[fx.Node]] = {}
    for node in graph.nodes:
        if node.op not in ("call_function", "get_attr"):
            continue
        if _makes_size(node):
            home[node] = [node]
            parts += [home[node], []]
        else:
            is_item = node.target is operator.getitem
            home[node] = home.get(node.args[0], parts[-1]) if is_item else parts[-1]
            home[node].append(node)
    return [part for part in parts if part]


def _arguments(part: Sequence[fx.Node]) -> tuple[fx.Node, ...]:
    own = set(part)
    used = (argument for node in part for argument in node.all_input_nodes)
    return tuple(dict.fromkeys(node for node in used if node not in own))


def _graph_of(
    root: fx.GraphModule, part: Sequence[fx.Node], arguments: Sequence[fx.Node], results: Sequence[fx.Node]
) -> fx.GraphModule:
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for node in arguments:
        copies[node] = graph.placeholder(node.name)
        copies[node].meta = dict(node.meta)
    for node in part:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[node] for node in results))
    return fx.GraphModule(root, graph)


def _runner(
    part: fx.GraphModule, place: int, compile_part: Callable[[fx.GraphModule, int], CompiledGraph]
) -> Run:
    if not depends_on_values(part.graph) and any(_makes_tensor(node) for node in part.graph.nodes):
        return compile_part(part, place)
    part.graph.set_codegen(_BoxedCodeGen())
    part.recompile()
    return lambda arguments, caller: part.forward(arguments)


def _makes_tensor(node: fx.Node) -> bool:
    leaves = pytree.tree_leaves(node.meta.get("val"))
    return node.op == "call_function" and any(isinstance(leaf, torch.Tensor) for leaf in leaves)
