"""A built graph to an `hlo.Module`: torch-mlir for all it can lower, custom calls for the rest."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from torch import fx
from torch.utils import _pytree as pytree

from neuron_tools.compiler.hlo import Module, Value
from neuron_tools.compiler.passes.own_results import copy_results
from neuron_tools.compiler.stablehlo import read_module
from neuron_tools.frontends.jax.partitioning import read_part, split
from neuron_tools.frontends.torch_lowering import mlir
from neuron_tools.frontends.torch_lowering.batched_products import keep_batch_axes
from neuron_tools.frontends.torch_lowering.builder import GraphBuilder, split_results
from neuron_tools.frontends.torch_lowering.fake import tensor_type
from neuron_tools.frontends.torch_lowering.intrinsics import intrinsic_of, operator_name, unlowered
from neuron_tools.frontends.torch_lowering.loops import (
    InLoops,
    has_loops,
    join_loops,
    with_operations_of_steps,
)
from neuron_tools.frontends.torch_lowering.partition import Partition, partition, splice
from neuron_tools.frontends.torch_lowering.recurrence import recurrence_of
from neuron_tools.frontends.torch_lowering.rejoined import (
    WHOLE,
    Shardings,
    rejoin,
    seen_by_partitioner,
    with_parts_of_calls,
)
from neuron_tools.frontends.torch_lowering.verdicts import VERDICTS, refused_call
from neuron_tools.frozen import frozen
from neuron_tools.records.program import FrameworkOperation

Build = Callable[[GraphBuilder], Sequence[fx.Node]]
Lowered = TypeVar("Lowered")


def lower(build: Build, framework: Sequence[FrameworkOperation], name: str) -> Module:
    """Lower what `build` adds to a graph builder.

    Where torch-mlir refuses a call, the verdict on it changes (it is decomposed, then cut out) and the graph
    is built again, until everything left can be lowered.

    Args:
        build: Adds parameters and calls to the builder it is given; returns the nodes wanted as results.
        framework: Rows that the nodes' `meta["row"]` index.
        name: The module's name.

    Returns:
        The module. Calls without a lowering are custom calls, each named in `warnings`.

    Raises:
        LoweringFailure: The graph fails even with every call cut out.
    """

    def finish(builder: GraphBuilder, results: Sequence[fx.Node], partitioned: Partition) -> Module:
        module, left = _lower_rest(builder, partitioned, framework)
        whole = splice(module, left, len(builder.parameters))
        named = replace(whole, name=name, aliases=_aliases(builder, results))
        return with_own_results(named, [node.meta.get("row", 0) for node in results])

    return _until_it_lowers(build, GraphBuilder, finish)


@frozen
class PortableModule:
    """A computation as StableHLO text that any StableHLO compiler takes.

    Attributes:
        text: The module; its function is `main`.
        results: For each wanted result, its position among the function's results.
        missing: Names of the operators that have no lowering: their results are further parameters of
            `main`, their operands further results.
    """

    text: str
    results: tuple[int, ...]
    missing: tuple[str, ...]


def lower_to_text(build: Build) -> PortableModule:
    """The StableHLO of what `build` adds, with the chip's activation functions spelled out.

    Args:
        build: As in `lower`.

    Raises:
        LoweringFailure: The graph fails even with every call cut out.
    """

    def finish(_: GraphBuilder, __: Sequence[fx.Node], partitioned: Partition) -> PortableModule:
        with mlir.LOCK:
            module = mlir.to_stablehlo(partitioned.graph)
            cuts = join_loops(module, partitioned, InLoops()).cuts
        missing = (str(cut.intrinsic.attributes.get("call_target_name", "")) for cut in cuts)
        return PortableModule(str(module), partitioned.results, tuple(dict.fromkeys(missing)))

    return _until_it_lowers(build, lambda: GraphBuilder(recurrence_of), finish)


@frozen
class PartOfModule:
    """What each device runs of a computation that is partitioned over several.

    Attributes:
        module: With its collectives; parameters and results have the sizes of one device's part.
        results: How the results lie over the devices.
    """

    module: Module
    results: tuple[str, ...]


def lower_part(
    build: Build,
    framework: Sequence[FrameworkOperation],
    name: str,
    devices: int,
    shardings: Mapping[int, str],
) -> PartOfModule:
    """Lower what `build` adds, partitioned over devices by XLA.

    Args:
        build: As in `lower`; it may have calls that become custom calls `MARK`.
        framework: Likewise.
        name: Likewise.
        devices: How many.
        shardings: How parameters lie over them, in XLA's text; those that are not named are whole on each.
            New values of parameters lie as these do.

    Raises:
        LoweringFailure: As in `lower`.
        PartitioningError: XLA cannot partition it, or jaxlib is absent, of which that is a part.
    """

    def finish(builder: GraphBuilder, results: Sequence[fx.Node], partitioned: Partition) -> PartOfModule:
        aliases = _aliases(builder, results)
        written = {result: shardings.get(parameter, WHOLE) for result, parameter in aliases}
        keep_batch_axes(partitioned.graph)
        with mlir.LOCK:
            module = mlir.to_stablehlo(partitioned.graph)
            inside = InLoops(list(framework))
            partitioned = join_loops(module, partitioned, inside)
            text = rejoin(module, partitioned, Shardings(len(builder.parameters), shardings, written))
        part = split(text, devices, [position not in written for position in range(len(results))])
        read = read_part(
            part.bytecode,
            framework=tuple(inside.framework),
            parameter_kinds=tuple(builder.kinds),
            parameter_names=tuple(str(node.target) for node in builder.parameters),
            warnings=partitioned.warnings,
        )
        named = replace(with_parts_of_calls(read, partitioned), name=name, aliases=aliases)
        return PartOfModule(
            with_own_results(named, [node.meta.get("row", 0) for node in results]), part.results
        )

    return _until_it_lowers(build, lambda: GraphBuilder(partial(seen_by_partitioner, intrinsic_of)), finish)


def _until_it_lowers(
    build: Build,
    make_builder: Callable[[], GraphBuilder],
    finish: Callable[[GraphBuilder, Sequence[fx.Node], Partition], Lowered],
) -> Lowered:
    progress = True
    while True:
        builder = make_builder()
        results = build(builder)
        if not progress:
            _refuse_everything(builder)
        partitioned = partition(builder.parameters, results)
        try:
            return finish(builder, results, partitioned)
        except mlir.LoweringFailure as failure:
            if not progress:
                raise
            nodes = {refused_call(node) for node in failure.nodes or _suspects(partitioned)}
            changed = [VERDICTS.refuse(node, failure.reason) for node in nodes]
            progress = any(changed)


def with_own_results(module: Module, rows: Sequence[int]) -> Module:
    """Copy results that are parameters, or other results: each has memory of its own.

    Args:
        module: Whose results may be anything.
        rows: Framework row to charge for each result.
    """
    copied = {
        position: (row,)
        for position, (result, row) in enumerate(zip(module.results, rows))
        if result in module.parameters or result in module.results[:position]
    }
    return copy_results(module, copied)


def _aliases(builder: GraphBuilder, results: Sequence[fx.Node]) -> tuple[tuple[int, int], ...]:
    """(result, parameter) positions of new values that take over the memory of the old ones."""
    return tuple(
        (position, builder.parameters.index(builder.homes[node]))
        for position, node in enumerate(results)
        if node in builder.homes
    )


def _refuse_everything(builder: GraphBuilder) -> None:
    """When nothing more can be learnt from failures: no call goes to torch-mlir."""
    for node in builder.graph.nodes:
        if node.op == "call_function" and node.target is not operator.getitem:
            node.meta.setdefault("intrinsic", unlowered(operator_name(node.target), "its graph fails"))


def _lower_rest(
    builder: GraphBuilder, partitioned: Partition, framework: Sequence[FrameworkOperation]
) -> tuple[Module, Partition]:
    """The module of what was not cut out, and what is still cut: that gives its last parameters."""
    names = [str(node.target) for node in builder.parameters]
    calls = any(node.op == "call_function" for node in partitioned.graph.nodes)
    if not calls and not has_loops(partitioned):
        return _passed_through(partitioned.graph, builder, names, framework), partitioned
    with mlir.LOCK:
        module = mlir.to_stablehlo(partitioned.graph)
        inside = InLoops(list(framework), spells=False)
        left = join_loops(module, partitioned, inside)
        extra = sum(len(cut.results) for cut in left.cuts)
        read = read_module(
            module,
            framework=tuple(inside.framework),
            parameter_kinds=(*builder.kinds, *["input"] * extra),
            parameter_names=(*names, *[""] * extra),
        )
    return with_operations_of_steps(read, inside), left


def _passed_through(
    graph: fx.Graph, builder: GraphBuilder, names: Sequence[str], framework: Sequence[FrameworkOperation]
) -> Module:
    """The module of a graph without calls, whatever its element types: all that is left are cuts."""
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    output = next(node for node in reversed(graph.nodes) if node.op == "output")
    return Module(
        name="main",
        values=tuple(Value(i, tensor_type(node.meta["val"])) for i, node in enumerate(placeholders)),
        parameters=tuple(range(len(placeholders))),
        operations=(),
        results=tuple(placeholders.index(node) for node in output.args[0]),
        framework=tuple(framework),
        parameter_kinds=tuple(builder.kinds),
        parameter_names=tuple(names),
    )


def _suspects(partitioned: Partition) -> list[fx.Node]:
    """Without a name in the diagnostics: the nodes that fail when lowered alone, or else all."""
    nodes = {refused_call(node): None for node in partitioned.graph.nodes if node.op == "call_function"}
    return [node for node in nodes if not _lowers_alone(node)] or list(nodes)


def _lowers_alone(node: fx.Node) -> bool:
    graph = fx.Graph()
    copies = {}
    for argument in node.all_input_nodes:
        copies[argument] = graph.placeholder("value")
        copies[argument].meta = dict(argument.meta)
    copy = graph.node_copy(node, copies.__getitem__)
    results = pytree.tree_leaves(split_results(graph, copy))
    graph.output(tuple(result for result in results if isinstance(result, fx.Node)))
    try:
        with mlir.LOCK:
            mlir.to_stablehlo(graph)
    except mlir.LoweringFailure:
        return False
    return True
