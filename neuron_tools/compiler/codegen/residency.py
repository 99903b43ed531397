"""Which results stay in SBUF for the groups that read them next, and what happens to them there.

A result stays where a later group of the same run of code reads it row by row as it was made: 128 rows on
partitions, whole rows. Products turn such rows on the Tensor engine; heads of attention are columns of
them. It is stored to HBM besides if anything else reads it. When it has to make room it
is spilled: saved to HBM, and reloaded by whoever still reads it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.compiler.allocate import latest
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.loop_space import group_space
from neuron_tools.compiler.codegen.residents import Resident, Stay
from neuron_tools.compiler.codegen.row_order import (
    Heads,
    RowOrder,
    attention_operands,
    channel_order,
    heads_result,
    left_order,
    plain_order,
)
from neuron_tools.compiler.codegen.slot import Slot, Transfer
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.codegen.windows import describe_window, feature_groups
from neuron_tools.compiler.graph import operands_of
from neuron_tools.compiler.hlo import Operation
from neuron_tools.compiler.passes.groups import Group, Shape
from neuron_tools.records.program import Memory, Purpose

VALUE_SHARE = 0.25
"""Part of SBUF that one result may stay in: larger ones would squeeze the tiles of those in between."""
TOTAL_SHARE = 0.375
"""Part of SBUF that all of them together may take."""
_PASSED_BY = frozenset(
    {"loop", "dot", "attention", "transpose", "slice", "pad", "concatenate", "pieces", "gather", "scatter",
     "reduce", "reduce_window", "convolution"}
)  # fmt: skip
"""Groups that may stand between: their code is made for where it stands, around what is in use."""


def order_of_group(context: Context, group: Group) -> RowOrder | None:
    """The rows of the results of a group that works on whole rows, 128 of them a tile; None for others."""
    partitions = context.core.sbuf_partitions
    if group.kind == "loop" and group.domain is not None:
        space = group_space(context, group)
        whole = space.rows_per_partition == 1 and space.chunk == space.columns == space.run
        return plain_order(space.rows, space.columns) if whole and space.segment == space.rows else None
    if group.kind == "dot" and group.domain is not None:
        numbers = group.operations[0].attributes.get("dot_dimension_numbers", {})
        shape = context.type_of(group.operations[0].operands[0]).shape
        batching = numbers.get("lhs_batching_dimensions", ())
        batch = math.prod(shape[axis] for axis in batching)
        if batch == 1 or (group.domain.rows // batch) % partitions == 0:
            return plain_order(group.domain.rows, group.domain.columns)
    return convolution_order(context, group) if group.kind == "convolution" else None


def convolution_order(context: Context, group: Group) -> RowOrder | None:
    """Channels of a convolution's result, which lie on partitions; None with several feature groups."""
    operation = group.operations[0]
    numbers = operation.attributes.get("dimension_numbers")
    if not isinstance(numbers, Mapping) or group.domain is None or feature_groups(operation) > 1:
        return None
    return channel_order(context.plan.views.layout(operation.results[0]), numbers["output"])


def image_order(context: Context, operation: Operation) -> RowOrder | None:
    """Channels of the image as a convolution can read them in SBUF; None where it has to load them."""
    numbers = operation.attributes.get("dimension_numbers")
    if not isinstance(numbers, Mapping) or feature_groups(operation) > 1:
        return None
    image, kernel = operation.operands[:2]
    window = describe_window(context, (image, kernel), operation.results[0], operation.attributes)
    order = channel_order(context.plan.views.layout(image), numbers["input"])
    return None if order is None or window.packs_taps or order.row_count != window.inputs else order


def plan_stays(context: Context, groups: Sequence[Group]) -> dict[int, Stay]:
    """The results of a run of groups that should stay in SBUF."""
    orders = [order_of_group(context, group) for group in groups]
    reads = _reads(context, groups, orders)
    outside = _outside_reads(context, {id(group) for group in groups})
    stays: dict[int, Stay] = {}
    for index, group in enumerate(groups):
        for value in group.outputs:
            later = [(reader, order) for reader, order in reads.get(value, ()) if reader != index]
            made = _order_made(context, group, value, orders[index], [order for _, order in later])
            fitting = [reader for reader, order in later if order is not None and order == made]
            if made is None or not fitting:
                continue
            last = max(fitting)
            if any(other.kind not in _PASSED_BY for other in groups[index + 1 : last]):
                continue
            stays[value] = Stay(last, len(fitting) < len(later) or value in outside, made)
    return stays


def _order_made(
    context: Context, group: Group, value: int, order: RowOrder | None,
    wanted: Sequence[RowOrder | None],
) -> RowOrder | None:  # fmt: skip
    """The rows of a result as its group makes them, tiles of 128; None where it does not."""
    if group.attention is not None:
        first = next((order for order in wanted if order is not None), None)
        rows, columns = context.type_of(value).shape[-2:]
        heads = heads_result(first, rows, columns) if first is not None else None
        whole = value in group.attention.values.results and heads is not None
        return first if whole and heads is not None and fills_tiles(context, heads) else None
    count = context.type_of(value).element_count
    if order is None or group.shapes[value] is not Shape.FULL:
        return None
    return order if count == order.row_count * order.column_count else None


def fills_tiles(context: Context, heads: Heads) -> bool:
    """Whether no tile of tokens holds those of two sequences."""
    return heads.batch == 1 or heads.rows % context.core.sbuf_partitions == 0


def _reads(
    context: Context, groups: Sequence[Group], orders: Sequence[RowOrder | None]
) -> dict[int, list[tuple[int, RowOrder | None]]]:
    """Value -> (group that reads it, the rows that it reads tile by tile; None where it reads otherwise)."""
    views = context.plan.views
    table: dict[int, list[tuple[int, RowOrder | None]]] = {}
    for index, group in enumerate(groups):
        for position, operation in enumerate(group.operations):
            product = group.kind != "loop" and position == 0
            for value in dict.fromkeys(operands_of(operation)):
                view = views.of(value)
                order = None
                if product or operation.opcode == "dot_general":
                    order = _order_in_product(context, group, operation, value)
                elif view.is_plain and group.kind in ("loop", "dot", "convolution"):
                    order = orders[index]
                for root in {value, view.root, views.layout(value).root}:
                    table.setdefault(root, []).append((index, order))
    return {value: _agreed(entries) for value, entries in table.items()}


def _order_in_product(context: Context, group: Group, operation: Operation, value: int) -> RowOrder | None:
    """The rows of an operand that a product can take from SBUF."""
    if group.attention is not None:
        heads = attention_operands(context, group).get(value)
        return heads.order() if heads is not None and fills_tiles(context, heads) else None
    if operation.operands.count(value) > 1 or value != operation.operands[0]:
        return None
    if group.kind == "convolution":
        return image_order(context, operation)
    if group.kind != "dot":
        return None
    if context.type_of(value).dtype in ("f32", "f64"):
        return None
    order = left_order(context, value, operation.attributes.get("dot_dimension_numbers", {}))
    # One row is loaded straight to the partitions of the contraction: that is quicker than turning it.
    return order if order is not None and order.rows else None


def _agreed(entries: Iterable[tuple[int, RowOrder | None]]) -> list[tuple[int, RowOrder | None]]:
    """One entry per reader: its order where all its operations read alike."""
    joined: dict[int, RowOrder | None] = {}
    for reader, order in entries:
        joined[reader] = order if joined.get(reader, order) == order else None
    return list(joined.items())


def _outside_reads(context: Context, inside: set[int]) -> set[int]:
    views, plan = context.plan.views, context.plan
    found: set[int] = set()
    for group in plan.groups:
        if id(group) not in inside:
            for operation in group.operations:
                for value in operands_of(operation):
                    found |= {value, views.of(value).root, views.layout(value).root}
    for value in plan.module.results:
        found |= {value, views.of(value).root, views.layout(value).root}
    return found


def may_stay(context: Context, value: int, byte_count: int, beside: int = 0) -> bool:
    """Whether a planned stay of this many bytes per partition has room.

    Args:
        context: Of the program.
        value: The result.
        byte_count: What it takes.
        beside: What other results of the same group take that stay.
    """
    limit = context.core.sbuf_bytes_per_partition
    total = byte_count + beside + context.residency.bytes_per_partition()
    return (
        value in context.residency.stays
        and byte_count <= VALUE_SHARE * limit
        and total <= TOTAL_SHARE * limit
        and byte_count <= context.sbuf.largest() // 2
    )


def note_uses(loop: TileLoop, residents: Iterable[tuple[Resident, Slot]]) -> None:
    """Make known when an emitted loop has used residents for the last time, each through a slot."""
    for resident, slot in residents:
        resident.tokens = latest(resident.tokens, loop.last_uses(slot))


def settle(context: Context, value: int, loop: TileLoop, slots: Sequence[tuple[Slot, Ints]]) -> None:
    """Make known that an emitted loop left a result in SBUF.

    Args:
        context: Of the program.
        value: The result.
        loop: The loop.
        slots: Its slots that hold the result, each with the (contents,) row tile that each content is, or -1.
    """
    count = 1 + max(int(places.max()) for _, places in slots)
    writes = [loop.last_writes(slot) for slot, _ in slots]
    tiles = np.full(count, -1, np.int64)
    written = np.full((max(len(steps) for steps in writes), count), -1, np.int64)
    tokens: dict[int, int] = {}
    for (slot, places), steps in zip(slots, writes):
        used = np.flatnonzero(places >= 0)
        tiles[places[used]] = slot.first_tile + used
        written[: len(steps), places[used]] = steps[:, used]
        tokens = latest(tokens, loop.last_uses(slot))
    place, stay = context.locations[value], context.residency.stays[value]
    context.residency.residents[value] = Resident(
        value, place, slots[0][0], stay.order.row_count, stay.order.column_count, tiles, written,
        [block for slot, _ in slots for block in slot.blocks], tokens, stay.elsewhere, stay.order,
    )  # fmt: skip


def spill(context: Context, resident: Resident) -> None:
    """Save a resident to HBM; who reads it from there reloads it."""
    if resident.stored:
        return
    resident.stored = True
    place, rows = resident.place, resident.row_count
    index = np.arange(len(resident.tiles))
    loop = TileLoop(context, len(index), context.spill_row(resident.value))
    slot = resident.read(index)
    loop.given(slot)
    partitions = np.minimum(context.core.sbuf_partitions, rows - index * context.core.sbuf_partitions)
    size = partitions * resident.columns * place.dtype.byte_count
    save = Transfer(
        context.store_queue(), Memory.SBUF, Memory.HBM, size, resident.order.run * place.dtype.byte_count,
        partitions, Purpose.SPILL_SAVE, place.dtype, place.tensor,
    )  # fmt: skip
    saved = loop.store(slot, save)
    loop.emit()
    place.spilled = True
    place.tokens = latest(place.tokens, loop.completion(saved))
    resident.tokens = latest(resident.tokens, loop.last_uses(slot))


def release(context: Context, value: int) -> None:
    """Give a resident's memory back."""
    resident = context.residency.residents.pop(value)
    for block in resident.blocks:
        context.sbuf.release(block, resident.tokens)


def release_read(context: Context, position: int) -> None:
    """Release what no group after this position reads."""
    residency = context.residency
    for value in [
        value
        for value in residency.residents
        if value in residency.stays and residency.stays[value].last_reader <= position
    ]:
        release(context, value)


def make_room(context: Context, kept: Collection[int] = ()) -> bool:
    """Spill everything that stays, except some values; whether there was anything."""
    values = [value for value in context.residency.residents if value not in kept]
    for value in values:
        spill(context, context.residency.residents[value])
        release(context, value)
    return bool(values)


def give_up_stays(context: Context, values: Iterable[int]) -> bool:
    """Let none of these results stay, which have not been made yet; whether any should have."""
    stays, given_up = context.residency.stays, set(values)
    context.residency.stays = {value: stay for value, stay in stays.items() if value not in given_up}
    return len(context.residency.stays) < len(stays)
