"""Code generation for exchanges between the two physical cores of a logical NeuronCore: they meet in HBM."""

from __future__ import annotations

from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.records.program import Engine


def generate_exchange(context: Context, group: Group) -> None:
    """Emit a barrier behind the core's own part; the results can be read when both cores are there."""
    operation = group.operations[0]
    own = context.location(operation.operands[0])
    token = context.builder.core_barrier(
        context.barrier_queue(), hlo=context.hlo(group), after=own.tokens.values()
    )
    for result in operation.results:
        context.define(result)
        context.complete(result, {int(Engine.GPSIMD): token})
