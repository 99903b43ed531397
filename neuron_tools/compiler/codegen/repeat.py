"""Generates a fusion plan: equal layers are compiled once and appended as often as they occur."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from neuron_tools.compiler.codegen.context import Context, Emitters
from neuron_tools.compiler.codegen.generate import generate_group
from neuron_tools.compiler.codegen.residency import plan_stays, release_read, spill
from neuron_tools.compiler.codegen.section import Binding, Section, SectionContext, append_section
from neuron_tools.compiler.graph import operands_of
from neuron_tools.compiler.passes.groups import FusionPlan, Group
from neuron_tools.compiler.passes.repetition import Repetition, Window, find_repetitions

_ALTERNATING = 2
"""Copies after which memory that only one copy reads is used again: the one between keeps them apart."""


def generate_plan(context: Context) -> None:
    """Emit all groups of the context's plan.

    Layers of a large model are copies of one another. In a small one each has code of its own, so that what
    one leaves for the next can stay in SBUF. So has each where weights stay there, as copies load the same.
    """
    if context.options.resident_weight_bytes:
        generate_groups(context, context.plan.groups)
        return
    repetitions = find_repetitions(context.plan)
    for index, repetition in enumerate(repetitions):
        if len(repetition.windows) == 1:
            generate_groups(context, repetition.windows[0].groups)
            continue
        section = record(context, repetition.windows[0])
        if len(section.instructions) * len(repetition.windows) < context.options.copied_from:
            generate_groups(context, _groups_of(repetitions[index:]))
            return
        _generate_repetition(context, repetition, section)


def _groups_of(repetitions: Sequence[Repetition]) -> tuple[Group, ...]:
    return tuple(group for item in repetitions for window in item.windows for group in window.groups)


def generate_groups(context: Context, groups: Sequence[Group]) -> None:
    """Emit groups that follow one another; their results stay in SBUF where that helps."""
    outer = context.residency.stays
    context.residency.stays = plan_stays(context, groups) if context.options.keep_on_chip else {}
    for position, group in enumerate(groups):
        generate_group(context, group)
        release_read(context, position)
    context.residency.stays = outer


def _generate_repetition(context: Context, repetition: Repetition, section: Section) -> None:
    private = _private_tensors(context, repetition, section)
    earlier: list[dict[int, int]] = []
    for index, window in enumerate(repetition.windows):
        reused = earlier[index - _ALTERNATING] if index >= _ALTERNATING else {}
        binding = Binding(window.values, window.framework, reused=reused)
        tensors, places = append_section(context, section, binding)
        earlier.append({row: int(tensors[row]) for row in private})
        for value, place in places.items():
            context.locations[window.values.get(value, value)] = place


def record(context: Context, window: Window) -> Section:
    """The code of a window's groups, as a section."""
    inner = SectionContext(context, context.plan)
    generate_groups(inner, window.groups)
    outputs = dict.fromkeys(value for group in window.groups for value in group.outputs)
    return inner.section([value for value in outputs if value in inner.locations])


def _private_tensors(context: Context, repetition: Repetition, section: Section) -> list[int]:
    """Tensor rows of the section that nothing outside their own copy reads."""
    made = [value for group in repetition.windows[0].groups for value in group.shapes]
    origin = {
        window.values.get(value, value): (index, value)
        for index, window in enumerate(repetition.windows)
        for value in made
    }
    shared = {
        origin[value][1]
        for copy, value in _reads(context.plan, repetition)
        if value in origin and origin[value][0] != copy
    }
    return [row for row, value in section.made.items() if value in set(made) - shared]


def _reads(plan: FusionPlan, repetition: Repetition) -> Iterator[tuple[int, int]]:
    """(copy that reads, value in memory that it reads) all over the plan; -1 is what stands outside."""
    owner = {id(group): index for index, window in enumerate(repetition.windows) for group in window.groups}
    for group in plan.groups:
        for operand in dict.fromkeys(value for item in group.operations for value in operands_of(item)):
            for value in {operand, plan.views.layout(operand).root, plan.views.of(operand).root}:
                yield owner.get(id(group), -1), value
    for result in plan.module.results:
        yield -1, result
        yield -1, plan.views.of(result).root


EMITTERS = Emitters(generate_plan, spill)
"""What a context of this code generator calls back."""
