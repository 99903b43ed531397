"""Code generation for control flow: a loop's body once per trip, a conditional's longest branch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from neuron_tools.compiler.codegen.context import Context, Location
from neuron_tools.compiler.hlo import Module, Operation, Region
from neuron_tools.compiler.passes.fusion import FusionPlan, Group
from neuron_tools.compiler.passes.pipeline import plan_module

MAXIMUM_TRIPS = 1024
"""Bodies emitted for one loop; longer loops are cut there, with a warning."""


def generate_while(context: Context, group: Group) -> None:
    """Emit the body as often as the loop runs, if its condition compares a counter with a constant."""
    operation = group.operations[0]
    trips = trip_count(operation, context.module)
    if trips is None:
        trips = context.options.while_trip_count
        context.builder.warning(
            f"A loop's trip count is not known before it runs: its body is timed {trips} time(s)."
        )
    if trips > MAXIMUM_TRIPS:
        context.builder.warning(f"A loop of {trips} trips is timed as {MAXIMUM_TRIPS}.")
        trips = MAXIMUM_TRIPS
    places = [context.location(value) for value in operation.operands]
    body = plan_region(context, operation, operation.regions[-1])
    for _ in range(trips):
        places = run_region(context, body, places)
    _bind(context, operation, places)


def generate_branch(context: Context, group: Group) -> None:
    """Emit the longest branch of an `if` or `case`: which one runs is not known before."""
    operation = group.operations[0]
    longest = max(operation.regions, key=lambda region: len(region.operations))
    context.builder.warning("A conditional is timed as its longest branch.")
    _bind(context, operation, run_region(context, plan_region(context, operation, longest), []))


def plan_region(context: Context, parent: Operation, region: Region) -> FusionPlan:
    """The fusion plan of a region's operations, which inherit `parent`'s framework rows."""
    operations = tuple(
        inner if inner.framework else replace(inner, framework=parent.framework)
        for inner in region.operations
    )
    body = replace(
        context.module, parameters=region.parameters, operations=operations, results=region.results
    )
    return plan_module(body, context.options)


def run_region(context: Context, plan: FusionPlan, arguments: list[Location]) -> list[Location]:
    """Emit a planned region on given arguments; returns where its results are."""
    from neuron_tools.compiler.codegen.generate import generate_group  # which sends loops here

    nested = context.nested(plan, dict(zip(plan.module.parameters, arguments)))
    for group in plan.groups:
        generate_group(nested, group)
    return [nested.location(value) for value in plan.module.results]


def _bind(context: Context, operation: Operation, places: list[Location]) -> None:
    for value, place in zip(operation.results, places):
        context.locations[value] = place
    for value in operation.results[len(places) :]:
        context.define(value)


def trip_count(operation: Operation, module: Module) -> int | None:
    """How often a `while` runs: (limit - start) / step of a counter, if all three are constants.

    Recognises what front ends write: the condition compares one loop value with a constant, the body adds
    a constant to it.
    """
    if len(operation.regions) != 2:
        return None
    condition, body = operation.regions
    test = next((op for op in condition.operations if op.results == condition.results), None)
    if test is None or test.opcode != "compare" or test.operands[0] not in condition.parameters:
        return None
    index = condition.parameters.index(test.operands[0])
    outer = _numbers(module.operations)
    limit = {**outer, **_numbers(condition.operations)}.get(test.operands[1])
    start = outer.get(operation.operands[index])
    step = _step(body, index, {**outer, **_numbers(body.operations)})
    if limit is None or start is None or not step:
        return None
    extra = 1 if test.attributes.get("comparison_direction") in ("LE", "GE") else 0
    return max(0, int(-(-(limit - start + extra * (1 if step > 0 else -1)) // step)))


def _numbers(operations: tuple[Operation, ...]) -> Mapping[int, Any]:
    """Values of scalar constants."""
    return {
        op.results[0]: op.attributes["value"]
        for op in operations
        if op.opcode == "constant" and isinstance(op.attributes.get("value"), (int, float))
    }


def _step(body: Region, index: int, numbers: Mapping[int, Any]) -> Any | None:
    """What a loop's body adds to its counter."""
    made = {result: op for op in body.operations for result in op.results}
    addition = made.get(body.results[index])
    if addition is None or addition.opcode not in ("add", "subtract"):
        return None
    if body.parameters[index] not in addition.operands:
        return None
    step = next((numbers[v] for v in addition.operands if v in numbers), None)
    return -step if step is not None and addition.opcode == "subtract" else step
