"""Code generation for control flow: a loop's body compiled once and appended per trip, a branch's code.

A loop's counter lives in registers. A loop whose condition follows from its counter knows its trips; where
data decides, the front end may say how many there were (attribute `trip_count` of the `while`, `branch` of
a conditional), since values are computed by the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from neuron_tools.compiler.allocate import latest
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.location import Location
from neuron_tools.compiler.codegen.movement import copy_tensor, fill_tensor
from neuron_tools.compiler.codegen.section import Binding, Section, SectionContext, append_section
from neuron_tools.compiler.hlo import Module, Operation, Region
from neuron_tools.compiler.passes.groups import FusionPlan, Group
from neuron_tools.compiler.passes.in_place import UPDATES, final_values
from neuron_tools.compiler.passes.pipeline import plan_body
from neuron_tools.compiler.passes.register_arithmetic import register_values, without_counters

MAXIMUM_ROWS = 8_000_000
"""Instructions emitted for one loop; longer loops are cut there, with a warning."""
_ALTERNATING = 2
"""Trips after which a tensor made in the body is written again: the trip between them has read it."""


def generate_while(context: Context, group: Group) -> None:
    """Emit the body as often as the loop runs; every trip's operations name the loop and the trip."""
    operation = group.operations[0]
    condition, body = operation.regions
    plan, left = _plan_body(context, operation, body)
    places = _begin(context, group, _written_in_place(plan, body))
    decides = _condition_is_data(context.module, condition)
    section = _record_trip(context, operation, plan, left, places, condition if decides else None)
    trips = _trips(context, operation, section)
    name = context.unique_name("while")
    earlier: list[dict[int, int]] = []
    for trip in range(trips):
        context.locations.update(zip(body.parameters, places))
        if decides:
            context.locations.update(zip(condition.parameters, places))
        reused = earlier[trip - _ALTERNATING] if trip >= _ALTERNATING else {}
        tensors, made = append_section(context, section, Binding(prefix=f"{name}.{trip}.", reused=reused))
        earlier.append({row: int(tensors[row]) for row in section.made})
        places = [made.get(value, places[index]) for index, value in enumerate(_results(body, section))]
        if decides:
            decided = made[condition.results[0]].tokens
            places = [replace(place, tokens=latest(place.tokens, decided)) for place in places]
    _bind(context, operation, places)


def _results(body: Region, section: Section) -> tuple[int, ...]:
    """What the body leaves in each carried place; a counter's place is left alone (-1)."""
    return tuple(value if value in section.outputs else -1 for value in body.results)


def _begin(context: Context, group: Group, written: frozenset[int]) -> list[Location]:
    """Where carried values are at first: those that the body writes into get memory of their own, once."""
    operation = group.operations[0]
    hlo = context.hlo(group, opcode="copy") if written else -1
    places = []
    for position, value in enumerate(operation.operands):
        if position in written:
            place = context.define(operation.results[position])
            if context.plan.views.of(value).root < 0:
                place.tokens = fill_tensor(context, place, hlo)
            else:
                place.tokens = copy_tensor(context, context.location(value), place, hlo)
        else:
            place = context.location(value)
        places.append(place)
    return places


def _written_in_place(plan: FusionPlan, body: Region) -> frozenset[int]:
    """Positions of the carried values that a trip changes where they are."""
    final = final_values(plan.in_place)
    pairs = enumerate(zip(body.parameters, body.results))
    return frozenset(at for at, (before, after) in pairs if final.get(before) == plan.views.of(after).root)


def _record_trip(
    context: Context,
    operation: Operation,
    plan: FusionPlan,
    results: tuple[int, ...],
    places: list[Location],
    condition: Region | None,
) -> Section:
    """One trip as a section whose parameters are the carried values; it leaves `results` in memory."""
    body = operation.regions[-1]
    inner = SectionContext(context, plan)
    inner.forget_results()
    for value, place in zip(body.parameters, places):
        inner.parameter(value, place)
    outputs = [value for value in results if value not in body.parameters or value in body.results]
    context.emitters.plan(inner)
    if condition is not None:
        test = plan_region(context, operation, condition)
        for value, place in zip(condition.parameters, places):
            inner.parameter(value, place)
        tested = inner.nested(test, {})
        context.emitters.plan(tested)
        inner.locations.update({value: tested.location(value) for value in condition.results})
        outputs += condition.results
    return inner.section(list(dict.fromkeys(outputs)))


def _plan_body(context: Context, operation: Operation, body: Region) -> tuple[FusionPlan, tuple[int, ...]]:
    """The body's plan without its counters, and the values that it leaves in memory."""
    module, counters = without_counters(_region_module(context, operation, body))
    plan = plan_body(replace(module, aliases=_updated(module, body)), context.options)
    kept = [value for index, value in enumerate(body.results) if index not in counters]
    return plan, tuple(dict.fromkeys(kept))


def _updated(module: Module, body: Region) -> tuple[tuple[int, int], ...]:
    """(position of a result, position of a parameter) of carried values that a body updates."""
    made = {value for each in module.operations if each.opcode in UPDATES for value in each.results}
    places = {value: at for at, value in enumerate(module.parameters)}
    homes = {after: places[before] for before, after in zip(body.parameters, body.results) if after in made}
    return tuple((at, homes[value]) for at, value in enumerate(module.results) if value in homes)


def _trips(context: Context, operation: Operation, section: Section) -> int:
    trips = operation.attributes.get("trip_count")
    if trips is None:
        trips = trip_count(operation, context.module)
    if trips is None:
        trips = context.options.while_trip_count
        context.builder.warning(
            f"A loop's trip count is not known before it runs: its body is timed {trips} time(s)."
        )
    limit = max(1, MAXIMUM_ROWS // max(1, len(section.instructions)))
    if trips > limit:
        context.builder.warning(f"A loop of {trips} trips is timed as {limit}.")
    return min(int(trips), limit)


def _condition_is_data(module: Module, condition: Region) -> bool:
    """Whether a loop goes on by what it computed, not by its counter."""
    inner = replace(module, operations=condition.operations, parameters=condition.parameters)
    outer = {value for operation in module.operations for value in operation.results}
    held = register_values(inner, (*condition.parameters, *outer, *module.parameters))
    return any(value not in held for value in condition.results)


def generate_branch(context: Context, group: Group) -> None:
    """Emit the branch that the front end names, else the longest: which one runs is not known before."""
    operation = group.operations[0]
    taken = operation.attributes.get("branch")
    if taken is None:
        context.builder.warning("A conditional is timed as its longest branch.")
        region = max(operation.regions, key=lambda region: len(region.operations))
    else:
        region = operation.regions[min(max(int(taken), 0), len(operation.regions) - 1)]
    _bind(context, operation, run_region(context, plan_region(context, operation, region), []))


def _region_module(context: Context, parent: Operation, region: Region) -> Module:
    """A region's operations, which inherit `parent`'s framework rows, as a module."""
    operations = tuple(
        inner if inner.framework else replace(inner, framework=parent.framework)
        for inner in region.operations
    )
    return replace(
        context.module,
        parameters=region.parameters,
        operations=operations,
        results=region.results,
        aliases=(),
    )


def plan_region(context: Context, parent: Operation, region: Region) -> FusionPlan:
    """The fusion plan of a region."""
    return plan_body(_region_module(context, parent, region), context.options)


def run_region(context: Context, plan: FusionPlan, arguments: list[Location]) -> list[Location]:
    """Emit a planned region on given arguments; returns where its results are."""
    nested = context.nested(plan, dict(zip(plan.module.parameters, arguments)))
    context.emitters.plan(nested)
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
