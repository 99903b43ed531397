"""Code generation for collectives: rings of transfers between the members of a replica group.

A member sends one piece to its neighbour and gets one from the other side per step, so a collective is as
many transfers of a piece, each after the one before: n - 1 for all_gather, reduce_scatter and all_to_all
over n members, twice as many for all_reduce, one for a permutation or a broadcast. Reducing steps add on
the way, as the DMA engines do. The program holds what this core moves.
Source of the step counts: the ring algorithms of aws-neuron-sdk, collectives guide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from neuron_tools.compiler.codegen.context import Context, Location
from neuron_tools.compiler.codegen.movement import copy_tensor
from neuron_tools.compiler.codegen.tile_loop import TileLoop, Transfer
from neuron_tools.compiler.passes.fusion import Group
from neuron_tools.simulator.program import Engine, Memory, Opcode

_SINGLE_STEP = frozenset({"collective_permute", "collective_broadcast"})


def generate_collective(context: Context, group: Group) -> None:
    """Emit one collective; each pair of operand and result goes round the ring in turn."""
    operation = group.operations[0]
    hlo = context.hlo(group)
    members = group_size(context, group)
    for operand, result in zip(operation.operands, operation.results):
        source, target = context.location(operand), context.define(result)
        if context.type_of(operand).element_count == 0:
            continue
        if members <= 1 and operation.opcode not in _SINGLE_STEP:
            context.complete(result, copy_tensor(context, source, target, hlo))
            continue
        _ring(context, source, target, steps=ring_steps(operation.opcode, members), members=members, hlo=hlo)


def group_size(context: Context, group: Group) -> int:
    """Members of each replica group: as stated, or by how much the result outgrows the operand."""
    operation = group.operations[0]
    stated = operation.attributes.get("replica_groups_shape")
    if stated:
        return int(stated[-1])
    before, after = (
        context.type_of(values[0]).element_count for values in (operation.operands, operation.results)
    )
    ratio = max(before, after) // max(1, min(before, after))
    return ratio if ratio > 1 else max(1, int(operation.attributes.get("split_count", 1)))


def ring_steps(opcode: str, members: int) -> int:
    """Transfers that follow one another, each of one piece."""
    if opcode in _SINGLE_STEP:
        return 1
    return (members - 1) * (2 if opcode == "all_reduce" else 1)


def _ring(
    context: Context, source: Location, target: Location, *, steps: int, members: int, hlo: int
) -> None:
    """Each step waits for the one before; the first reads the operand, the last completes the result."""
    item = source.dtype.byte_count
    whole = max(source.type.element_count, target.type.element_count) * item
    piece = whole if steps == 1 else max(item, -(-whole // members))
    queue = context.collective_queue()
    tokens: Mapping[int, int] = source.tokens
    for _ in range(steps):
        loop = TileLoop(context, 1, hlo)
        transfer = Transfer(
            queue, Memory.HBM, Memory.HBM, np.full(1, piece, np.int64), piece, 0, target.store_purpose,
            source.dtype, target.tensor,
        )  # fmt: skip
        step = loop.step(Engine.SYNC, Opcode.DMA_TRIGGER, transfer=transfer, after=[*tokens.values()])
        loop.emit()
        tokens = loop.completion(step)
    target.tokens = dict(tokens)


COLLECTIVES: Mapping[str, Callable[[Context, Group], None]] = dict.fromkeys(
    (
        "all_reduce",
        "all_gather",
        "reduce_scatter",
        "all_to_all",
        "collective_permute",
        "collective_broadcast",
    ),
    generate_collective,
)
"""Generators of the collectives by opcode."""
