"""Code generation for sort and top-k: rows on partitions, eight results per pass of the Vector engine.

The hardware finds the eight largest of a row (MAX8), their positions (FIND_INDEX8) and blanks them
(MATCH_REPLACE8); a full sort repeats that, a top-k only as often as needed. Rows longer than what eight
at a time can sort sensibly are costed as a bitonic network of Vector passes instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from neuron_tools.arrays import Bools, Ints
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.slot import Slot
from neuron_tools.compiler.codegen.space import Space
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.records.program import Engine, Opcode

AT_ONCE = 8
"""Results of one MAX8 (isa_functions: `max8`)."""
MAXIMUM_ROW = 16384
"""Elements per partition that MAX8 takes (isa_functions: `max8`, 8..16384)."""


def generate_sort(context: Context, group: Group) -> None:
    """Emit a sort along one dimension with all its operands (keys first)."""
    operation = group.operations[0]
    type_ = context.type_of(operation.operands[0])
    axis = int(operation.attributes.get("dimension", len(type_.shape) - 1))
    length = type_.shape[axis]
    _emit(context, group, length, _needed(context, operation.results, length, axis))


def generate_top_k(context: Context, group: Group) -> None:
    """Emit chlo.top_k: the k largest of each row and where they are."""
    operation = group.operations[0]
    length = context.type_of(operation.operands[0]).shape[-1]
    _emit(context, group, length, context.type_of(operation.results[0]).shape[-1])


def _needed(context: Context, results: tuple[int, ...], length: int, axis: int) -> int:
    """How many sorted elements anybody reads: all, or the longest slice taken of the results."""
    needed = 0
    for user in context.plan.module.operations:
        for value in user.operands:
            if value in results:
                if user.opcode != "slice" or user.attributes["start_indices"][axis] != 0:
                    return length
                needed = max(needed, int(user.attributes["limit_indices"][axis]))
    if any(value in results for value in context.plan.module.results):
        return length
    return needed or length


def _emit(context: Context, group: Group, length: int, needed: int) -> None:
    operation = group.operations[0]
    hlo = context.hlo(group)
    for value in operation.results:
        context.define(value)
    count = context.type_of(operation.operands[0]).element_count
    if count == 0 or length == 0:
        return
    rows = count // length
    item = max(context.locations[value].dtype.byte_count for value in operation.results)
    room = context.core.sbuf_bytes_per_partition // (4 * item * max(2, len(operation.operands)))
    space = Space(rows, length, length, 1, min(length, MAXIMUM_ROW, room), rows, count,
                  partitions=context.core.sbuf_partitions)  # fmt: skip
    loop = TileLoop(context, space.iterations, hlo)
    slots = [_load(context, loop, space, value) for value in operation.operands]
    partitions, widths = space.partition_counts(), space.widths()
    passes = -(-min(needed, space.chunk) // AT_ONCE)
    network = _network_passes(length)
    if passes <= network and needed < space.chunk and space.chunks * needed <= space.chunk:
        _emit_largest(context, loop, group, space, slots[0], needed)
        return
    results = [_result(context, loop, space, value) for value in operation.results]
    if passes <= network:
        _eight_at_a_time(loop, slots[0], results, partitions, widths, passes=passes)
    else:
        for _ in range(network):
            loop.step(Engine.VECTOR, Opcode.TENSOR_TENSOR, reads=slots[:2], writes=results[:1],
                      partitions=partitions, elements=widths)  # fmt: skip
    for value, slot in zip(operation.results, results):
        _save(context, loop, space, value, slot, needed)
    loop.emit()
    for value in operation.results:
        context.complete(value, loop.stored())


def _network_passes(length: int) -> int:
    """Compare-exchange passes of a bitonic sort: log2(n) (log2(n) + 1) / 2, two instructions each."""
    stages = max(1, math.ceil(math.log2(max(2, length))))
    return stages * (stages + 1)


def _emit_largest(
    context: Context, loop: TileLoop, group: Group, space: Space, keys: Slot, needed: int
) -> None:
    """Only the largest of each row: among those of its pieces, which stay on chip, in the end."""
    operation, partitions, passes = group.operations[0], space.partition_counts(), -(-needed // AT_ONCE)
    version, is_last = space.row_tile(), space.chunk_number() == space.chunks - 1
    found = [
        loop.slot("largest", space.chunks * needed * dtype.byte_count, dtype, version=version)
        for dtype in (chip_dtype(context.type_of(value).dtype) for value in operation.results)
    ]
    _eight_at_a_time(loop, keys, found, partitions, space.widths(), passes=passes)
    if space.chunks > 1:
        among = np.full(space.iterations, space.chunks * needed)
        _eight_at_a_time(loop, found[0], found, partitions, among, passes=passes, active=is_last)
        # Where each is among those of the pieces says where it is in the row.
        loop.step(Engine.GPSIMD, Opcode.LOCAL_GATHER, reads=found[-1:], writes=found[-1:],
                  partitions=partitions, elements=np.full(space.iterations, needed), active=is_last,
                  accumulates=True)  # fmt: skip
    for value, slot in zip(operation.results, found):
        location, rows = context.locations[value], space.tile_row_counts()
        store = location.store(context.store_queue(), rows * needed, needed, partitions)
        loop.store(slot, store, active=is_last)
    loop.emit()
    for value in operation.results:
        context.complete(value, loop.stored())


def _eight_at_a_time(
    loop: TileLoop, keys: Slot, results: list[Slot], partitions: Ints, widths: Ints, *, passes: int,
    active: Bools | None = None,
) -> None:  # fmt: skip
    for _ in range(passes):
        loop.step(Engine.VECTOR, Opcode.MAX8, reads=(keys,), writes=results[:1], partitions=partitions,
                  elements=widths, active=active, accumulates=True)  # fmt: skip
        loop.step(Engine.VECTOR, Opcode.FIND_INDEX8, reads=(keys, results[0]), writes=results[-1:],
                  partitions=partitions, elements=widths, active=active, accumulates=True)  # fmt: skip
        loop.step(Engine.VECTOR, Opcode.MATCH_REPLACE8, reads=(keys, results[0]), writes=(keys,),
                  partitions=partitions, elements=widths, active=active)  # fmt: skip


def _load(context: Context, loop: TileLoop, space: Space, value: int) -> Slot:
    dtype = chip_dtype(context.type_of(value).dtype)
    slot = loop.slot("keys", space.chunk * dtype.byte_count, dtype)
    view = context.plan.views.of(value)
    if view.root < 0:
        loop.step(Engine.GPSIMD, Opcode.IOTA, writes=(slot,), partitions=space.partition_counts(),
                  elements=space.widths())  # fmt: skip
        return slot
    location = context.location(value)
    transfer = location.load(
        context.load_queue(), space.tile_elements(), space.run_elements(), space.partition_counts()
    )
    loop.load(slot, transfer, after=location.tokens)
    return slot


def _result(context: Context, loop: TileLoop, space: Space, value: int) -> Slot:
    dtype = chip_dtype(context.type_of(value).dtype)
    return loop.slot("sorted", space.chunk * dtype.byte_count, dtype)


def _save(context: Context, loop: TileLoop, space: Space, value: int, slot: Slot, needed: int) -> None:
    location = context.locations[value]
    elements = space.tile_elements()
    if context.type_of(value).element_count < space.element_count:
        elements = np.maximum(1, elements * context.type_of(value).element_count // space.element_count)
    run = min(space.run_elements(), max(1, needed))
    loop.store(slot, location.store(context.store_queue(), elements, run, space.partition_counts()))


SORTS: Mapping[str, Callable[[Context, Group], None]] = {"sort": generate_sort, "top_k": generate_top_k}
"""Generators by opcode."""
