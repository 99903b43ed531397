"""Sends each group of the fusion plan to its code generator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.estimate import generate_estimate
from neuron_tools.compiler.codegen.loop import generate_loop
from neuron_tools.compiler.codegen.matmul import generate_dot
from neuron_tools.compiler.codegen.movement import MOVEMENTS
from neuron_tools.compiler.passes.fusion import Group

GENERATORS: Mapping[str, Callable[[Context, Group], None]] = {
    "loop": generate_loop,
    "dot": generate_dot,
    **MOVEMENTS,
}
"""Group kind -> generator; kinds that are absent get a bandwidth-bound estimate."""


def generate_group(context: Context, group: Group) -> None:
    """Emit the instructions of one group."""
    results = [context.type_of(value).element_count for value in group.shapes]
    if not results or max(results) == 0:
        for value in group.shapes:
            context.define(value)
        return
    generator = GENERATORS.get(group.kind)
    if generator is None:
        generate_estimate(context, group)
    else:
        generator(context, group)
