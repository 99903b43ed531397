"""Code generation for collectives: this core's part in an operation of its replica group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.location import Location
from neuron_tools.compiler.codegen.movement import copy_tensor
from neuron_tools.compiler.hlo import Operation
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.records.program import Collective, CollectiveKind
from neuron_tools.simulator.builder import ENGINE_COUNT

KINDS: Mapping[str, CollectiveKind] = {
    "all_reduce": CollectiveKind.ALL_REDUCE,
    "all_gather": CollectiveKind.ALL_GATHER,
    "reduce_scatter": CollectiveKind.REDUCE_SCATTER,
    "all_to_all": CollectiveKind.ALL_TO_ALL,
    "collective_permute": CollectiveKind.PERMUTE,
    "collective_broadcast": CollectiveKind.BROADCAST,
}
"""StableHLO opcode -> what the ranks do."""


def generate_collective(context: Context, group: Group) -> None:
    """Emit one collective, of all its operands at once; alone in its group, a copy of each."""
    operation = group.operations[0]
    members = replica_group(context, operation)
    pairs = [
        (context.location(operand), context.define(result), result)
        for operand, result in zip(operation.operands, operation.results)
    ]
    moved = [(source, target, result) for source, target, result in pairs if _has_elements(source)]
    if len(members) > 1:
        _take_part(context, group, members, [(source, target) for source, target, _ in moved])
        return
    for source, target, result in moved:
        context.complete(result, copy_tensor(context, source, target, context.hlo(group)))


def _has_elements(place: Location) -> bool:
    return place.type.element_count > 0


def _take_part(
    context: Context, group: Group, members: tuple[int, ...], moved: Sequence[tuple[Location, Location]]
) -> None:
    if not moved:
        return
    opcode = group.operations[0].opcode
    size = sum(max(_byte_count(source), _byte_count(target)) for source, target in moved)
    collective = Collective(KINDS[opcode], size, members, moved[0][0].dtype, opcode)
    queue = context.collective_queue()
    after = {token for source, _ in moved for token in source.tokens.values()}
    token = context.builder.collective(queue, collective, hlo=context.hlo(group), after=after)
    for _, target in moved:
        target.tokens = {ENGINE_COUNT + queue: token}


def _byte_count(place: Location) -> int:
    return place.type.element_count * place.dtype.byte_count


def replica_group(context: Context, operation: Operation) -> tuple[int, ...]:
    """The ranks of the first replica group, which stands for the one that this core is in.

    A permutation's are all that send or receive. Where nothing is stated, as many ranks as the result is
    larger or smaller than the operand.
    """
    pairs = operation.attributes.get("source_target_pairs")
    if pairs:
        return tuple(sorted({int(rank) for rank in pairs}))
    ranks = operation.attributes.get("replica_groups")
    shape = operation.attributes.get("replica_groups_shape")
    if shape:
        first = ranks[: shape[-1]] if isinstance(ranks, tuple) else range(shape[-1])
        return tuple(int(rank) for rank in first if int(rank) >= 0)
    before, after = (
        context.type_of(values[0]).element_count for values in (operation.operands, operation.results)
    )
    ratio = max(before, after) // max(1, min(before, after))
    return tuple(range(max(ratio, int(operation.attributes.get("split_count", 1)))))


COLLECTIVES: Mapping[str, Callable[[Context, Group], None]] = dict.fromkeys(KINDS, generate_collective)
"""Generators of the collectives by opcode."""
