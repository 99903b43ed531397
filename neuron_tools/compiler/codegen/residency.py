"""Which results stay in SBUF for the groups that read them next, and what happens to them there.

A result stays where a later group of the same run of code reads it row by row as it was made: 128 rows on
partitions, whole rows. It is stored to HBM besides if anything else reads it. When it has to make room it
is spilled: saved to HBM, and reloaded by whoever still reads it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from neuron_tools.compiler.allocate import latest
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.loop_space import group_space
from neuron_tools.compiler.codegen.residents import Resident, Stay
from neuron_tools.compiler.codegen.slot import IntArray, Slot, Transfer
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.graph import operands_of
from neuron_tools.compiler.passes.groups import Group, Shape
from neuron_tools.records.program import Memory, Purpose

VALUE_SHARE = 0.25
"""Part of SBUF that one result may stay in: larger ones would squeeze the tiles of those in between."""
TOTAL_SHARE = 0.375
"""Part of SBUF that all of them together may take."""
_PASSED_BY = frozenset(
    {"loop", "dot", "attention", "transpose", "slice", "pad", "concatenate", "pieces", "gather", "scatter",
     "reduce", "convolution"}
)  # fmt: skip
"""Groups that may stand between: their code is made for where it stands, around what is in use."""


def rows_and_columns(context: Context, group: Group) -> tuple[int, int] | None:
    """Rows x columns of a group that works on whole rows, 128 of them a tile; None for other groups."""
    partitions = context.core.sbuf_partitions
    if group.kind == "loop" and group.domain is not None:
        space = group_space(context, group)
        whole = space.rows_per_partition == 1 and space.chunk == space.columns == space.run
        return (space.rows, space.columns) if whole and space.segment in (space.rows,) else None
    if group.kind == "dot" and group.domain is not None:
        numbers = group.operations[0].attributes.get("dot_dimension_numbers", {})
        shape = context.type_of(group.operations[0].operands[0]).shape
        batching = numbers.get("lhs_batching_dimensions", ())
        batch = math.prod(shape[axis] for axis in batching)
        if batch == 1 or (group.domain.rows // batch) % partitions == 0:
            return group.domain.rows, group.domain.columns
    return None


def plan_stays(context: Context, groups: Sequence[Group]) -> dict[int, Stay]:
    """The results of a run of groups that should stay in SBUF."""
    shapes = [rows_and_columns(context, group) for group in groups]
    reads = _reads(context, groups)
    inside = {id(group) for group in groups}
    outside = _outside_reads(context, inside)
    stays: dict[int, Stay] = {}
    for index, group in enumerate(groups):
        shape = shapes[index]
        if shape is None:
            continue
        for value in group.outputs:
            later = [(reader, plain) for reader, plain in reads.get(value, ()) if reader != index]
            fitting = [reader for reader, plain in later if plain and shapes[reader] == shape]
            count = context.type_of(value).element_count
            if not fitting or group.shapes[value] is not Shape.FULL or count != shape[0] * shape[1]:
                continue
            last = max(fitting)
            if any(other.kind not in _PASSED_BY for other in groups[index + 1 : last]):
                continue
            stays[value] = Stay(last, len(fitting) < len(later) or value in outside)
    return stays


def _reads(context: Context, groups: Sequence[Group]) -> dict[int, list[tuple[int, bool]]]:
    """Value -> (group that reads it, whether tile by tile as it lies)."""
    views = context.plan.views
    table: dict[int, list[tuple[int, bool]]] = {}
    for index, group in enumerate(groups):
        for position, operation in enumerate(group.operations):
            product = group.kind != "loop" and position == 0
            for value in dict.fromkeys(operands_of(operation)):
                view = views.of(value)
                plain = view.is_plain and not product and group.kind in ("loop", "dot")
                for root in {value, view.root, views.layout(value).root}:
                    table.setdefault(root, []).append((index, plain and root == view.root))
    return {value: _worst(entries) for value, entries in table.items()}


def _worst(entries: Iterable[tuple[int, bool]]) -> list[tuple[int, bool]]:
    """One entry per reader: it reads as the tile lies only where all its operations do."""
    joined: dict[int, bool] = {}
    for reader, plain in entries:
        joined[reader] = joined.get(reader, True) and plain
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


def may_stay(context: Context, value: int, byte_count: int) -> bool:
    """Whether a planned stay of this many bytes per partition has room."""
    limit = context.core.sbuf_bytes_per_partition
    total = byte_count + context.residency.bytes_per_partition()
    return (
        value in context.residency.stays
        and byte_count <= VALUE_SHARE * limit
        and total <= TOTAL_SHARE * limit
        and byte_count <= context.sbuf.largest() // 2
    )


def settle(
    context: Context, value: int, loop: TileLoop, slots: Sequence[tuple[Slot, IntArray]], columns: int
) -> None:
    """Make known that an emitted loop left a result in SBUF.

    Args:
        context: Of the program.
        value: The result.
        loop: The loop.
        slots: Its slots that hold the result, each with the (contents,) row tile that each content is, or -1.
        columns: Of the result.
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
    place = context.locations[value]
    context.residency.residents[value] = Resident(
        value, place, slots[0][0], place.type.element_count // columns, columns, tiles, written,
        [block for slot, _ in slots for block in slot.blocks], tokens,
        context.residency.stays[value].elsewhere,
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
        context.store_queue(), Memory.SBUF, Memory.HBM, size, resident.columns * place.dtype.byte_count,
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


def make_room(context: Context) -> bool:
    """Spill everything that stays; whether there was anything."""
    values = list(context.residency.residents)
    for value in values:
        spill(context, context.residency.residents[value])
        release(context, value)
    return bool(values)
