"""A built graph to an `hlo.Module`: torch-mlir for all it can lower, custom calls for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import fx

from neuron_tools.compiler.hlo import Module
from neuron_tools.compiler.stablehlo import read_module
from neuron_tools.frontends.torch_lowering import mlir
from neuron_tools.frontends.torch_lowering.builder import GraphBuilder, operator_name
from neuron_tools.frontends.torch_lowering.intrinsics import unlowered
from neuron_tools.frontends.torch_lowering.partition import partition, splice
from neuron_tools.simulator.program import FrameworkOperation


def lower(
    builder: GraphBuilder,
    results: Sequence[fx.Node],
    framework: Sequence[FrameworkOperation],
    name: str,
    parameter_kinds: Sequence[str] = (),
) -> Module:
    """Lower the part of a graph that `results` need.

    Args:
        builder: The graph; its parameters are the module's.
        results: Nodes wanted as results, in order.
        framework: Rows that the nodes' `meta["row"]` index.
        name: The module's name.
        parameter_kinds: "input" or "weight" per parameter; parameters added while tracing are weights.

    Returns:
        The module. Nodes without a lowering are custom calls, each named in `warnings`.
    """
    kinds = [*parameter_kinds, *["weight"] * (len(builder.parameters) - len(parameter_kinds))]
    while True:
        partitioned = partition(builder.parameters, results)
        extra = sum(len(cut.results) for cut in partitioned.cuts)
        try:
            with mlir.LOCK:
                module = read_module(
                    mlir.to_stablehlo(partitioned.graph),
                    framework=tuple(framework),
                    parameter_kinds=(*kinds, *["input"] * extra),
                    parameter_names=tuple(str(node.target) for node in builder.parameters) + ("",) * extra,
                    warnings=(),
                )
            return replace(splice(module, partitioned, len(builder.parameters)), name=name)
        except mlir.LoweringFailure as failure:
            failed = [partitioned.origins[node] for node in failure.nodes if node in partitioned.origins]
            _cut_out(failed or _suspects(partitioned.origins), failure.reason)


def _cut_out(nodes: Sequence[fx.Node], reason: str) -> None:
    """Mark nodes so that the next attempt does without them."""
    for node in nodes:
        scalars = [repr(argument) for argument in node.args if not isinstance(argument, fx.Node)]
        node.meta["intrinsic"] = unlowered(operator_name(node.target), reason, {"scalars": tuple(scalars)})


def _suspects(origins: dict[fx.Node, fx.Node]) -> list[fx.Node]:
    """Without a name in the diagnostics: the nodes that fail when lowered alone, or else all."""
    calls = [node for node in origins.values() if node.op == "call_function" and "intrinsic" not in node.meta]
    return [node for node in calls if not _lowers_alone(node)] or calls


def _lowers_alone(node: fx.Node) -> bool:
    graph = fx.Graph()
    copies = {}
    for argument in node.all_input_nodes:
        copies[argument] = graph.placeholder("value")
        copies[argument].meta = dict(argument.meta)
    copy = graph.node_copy(node, copies.__getitem__)
    graph.output((copy,))
    try:
        with mlir.LOCK:
            mlir.to_stablehlo(graph)
    except mlir.LoweringFailure:
        return False
    return True
