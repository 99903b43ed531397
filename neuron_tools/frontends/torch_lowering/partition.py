"""Cuts intrinsic nodes out of a graph, and puts their operations back into the module made from the rest.

A cut node's tensor arguments become extra results of the remaining graph and its results extra
parameters; afterwards the operation is inserted between the two and everything is ordered again.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx

from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.compiler.ready_program import ATTRIBUTE
from neuron_tools.frontends.torch_lowering.intrinsics import Intrinsic
from neuron_tools.frozen import frozen


@frozen
class Cut:
    """One node that was cut out.

    Attributes:
        intrinsic: What it becomes.
        row: Framework row.
        operands: Its tensor arguments, as positions among the remaining graph's results.
        results: Its results, as positions among the remaining graph's parameters.
        parts: Which of the node's results these are, where it has several.
    """

    intrinsic: Intrinsic
    row: int
    operands: tuple[int, ...]
    results: tuple[int, ...]
    parts: tuple[int, ...] = ()

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Attributes of its operation."""
        attributes = self.intrinsic.attributes
        if "parts" in attributes:
            return {**attributes, "parts": self.parts}
        ready = attributes.get(ATTRIBUTE)
        return {**attributes, ATTRIBUTE: ready.narrowed(self.parts)} if ready else attributes


@frozen
class Partition:
    """A graph without its intrinsic nodes.

    Attributes:
        graph: What torch-mlir gets: the parameters, then one placeholder per result of a cut node.
        results: For each wanted result, its position among the graph's results.
        cuts: What was cut out.
    """

    graph: fx.Graph
    results: tuple[int, ...]
    cuts: tuple[Cut, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to say of calls without a lowering, once each."""
        return tuple(dict.fromkeys(cut.intrinsic.warning for cut in self.cuts if cut.intrinsic.warning))


def partition(parameters: Sequence[fx.Node], results: Sequence[fx.Node]) -> Partition:
    """Cut every live node with `meta["intrinsic"]`.

    Args:
        parameters: All placeholders of the graph, in order.
        results: The nodes wanted as results.
    """
    return _Cutter(parameters, results).cut()


class _Cutter:
    def __init__(self, parameters: Sequence[fx.Node], results: Sequence[fx.Node]) -> None:
        self._parameters = parameters
        self._results = results
        self._graph = fx.Graph()
        self._copies: dict[fx.Node, fx.Node] = {}
        self._outputs: dict[fx.Node, int] = {}
        self._cuts: list[Cut] = []

    def cut(self) -> Partition:
        live = _live_nodes(self._results)
        for parameter in self._parameters:
            self._placeholder(parameter)
        positions = self._cut_results(live)
        for node in live:
            if node not in self._copies and not _is_cut(node):
                copy = self._graph.node_copy(node, self._copies.__getitem__)
                copy.meta = node.meta
                self._copies[node] = copy
        for node, result_positions in positions.items():
            operands = tuple(self._output(argument) for argument in node.all_input_nodes)
            parts = tuple(_index(part) for part in _tensor_parts(node))
            self._cuts.append(
                Cut(node.meta["intrinsic"], node.meta["row"], operands, result_positions, parts)
            )
        results = tuple(self._output(node) for node in self._results)
        self._graph.output(tuple(self._copies[node] for node in self._outputs))
        return Partition(self._graph, results, tuple(self._cuts))

    def _cut_results(self, live: list[fx.Node]) -> dict[fx.Node, tuple[int, ...]]:
        """A placeholder for each live result of each intrinsic node; their positions."""
        positions: dict[fx.Node, tuple[int, ...]] = {}
        for node in live:
            if "intrinsic" not in node.meta:
                continue
            parts = _tensor_parts(node)
            first = len(self._copies)
            for part in parts:
                self._placeholder(part)
            positions[node] = tuple(range(first, first + len(parts)))
        return positions

    def _placeholder(self, node: fx.Node) -> None:
        placeholder = self._graph.placeholder("value")
        placeholder.meta = {"val": node.meta["val"], "row": node.meta.get("row", -1)}
        self._copies[node] = placeholder

    def _output(self, node: fx.Node) -> int:
        return self._outputs.setdefault(node, len(self._outputs))


def _is_cut(node: fx.Node) -> bool:
    """Whether a node is cut out, or is a list among the results of one that is."""
    while node.target is operator.getitem and not isinstance(node.meta["val"], torch.Tensor):
        node = node.all_input_nodes[0]
    return "intrinsic" in node.meta


def _tensor_parts(node: fx.Node) -> list[fx.Node]:
    """The nodes that stand for a node's tensor results, through lists in tuples."""
    if isinstance(node.meta["val"], torch.Tensor):
        return [node]
    users = [user for user in node.users if user.target is operator.getitem]
    return [part for user in users for part in _tensor_parts(user)]


def _index(part: fx.Node) -> int:
    """Place of a part among its node's results."""
    return int(part.args[1]) if part.target is operator.getitem else 0


def _live_nodes(results: Sequence[fx.Node]) -> list[fx.Node]:
    """Nodes that the results need, in graph order."""
    needed: set[fx.Node] = set()
    pending = list(results)
    while pending:
        node = pending.pop()
        if node not in needed:
            needed.add(node)
            pending += node.all_input_nodes
    if not needed:
        return []
    graph = next(iter(needed)).graph
    return [node for node in graph.nodes if node in needed and node.op == "call_function"]


def splice(module: Module, partitioned: Partition, parameter_count: int) -> Module:
    """Put the cut operations into the module made from `partitioned.graph`.

    Args:
        module: The remaining graph's module, with its extra parameters and results.
        partitioned: How it was cut.
        parameter_count: How many parameters the whole computation has.
    """
    operations = list(module.operations)
    for cut in partitioned.cuts:
        operations.append(
            Operation(
                opcode=cut.intrinsic.opcode,
                operands=tuple(module.results[position] for position in cut.operands),
                results=tuple(module.parameters[position] for position in cut.results),
                attributes=cut.attributes,
                framework=(cut.row,) if cut.row >= 0 else (),
            )
        )
    return Module(
        name=module.name,
        values=module.values,
        parameters=module.parameters[:parameter_count],
        operations=tuple(_in_order(operations)),
        results=tuple(module.results[position] for position in partitioned.results),
        framework=module.framework,
        parameter_kinds=module.parameter_kinds[:parameter_count],
        parameter_names=module.parameter_names[:parameter_count],
        warnings=(*module.warnings, *partitioned.warnings),
    )


def _in_order(operations: list[Operation]) -> list[Operation]:
    """Operations ordered so that every operand is made before it is used; otherwise as they stand."""
    producer = {result: index for index, operation in enumerate(operations) for result in operation.results}
    return [operations[at] for at in in_order([_producers(each, producer) for each in operations])]


def in_order(needed: Sequence[Sequence[int]]) -> list[int]:
    """Positions ordered so that what each needs comes before it; otherwise as they stand.

    Args:
        needed: For each position, those that it needs.
    """
    ordered: list[int] = []
    done: set[int] = set()
    for root in range(len(needed)):
        stack = [root]
        while stack:
            index = stack[-1]
            waiting = [] if index in done else [other for other in needed[index] if other not in done]
            if waiting:
                stack += waiting
                continue
            stack.pop()
            if index not in done:
                done.add(index)
                ordered.append(index)
    return ordered


def _producers(operation: Operation, producer: dict[int, int]) -> list[int]:
    """Operations that make the operands, also those that nested regions use from outside."""
    used = list(operation.operands)
    for region in operation.regions:
        for inner in region.operations:
            used += inner.operands
    own = set(operation.results)
    return [producer[value] for value in used if value in producer and value not in own]
