"""Code generation for gather, scatter and embedding look-ups: one DMA descriptor per row, made by GpSimd.

Where each row is looked into by indices of its own, rows are on partitions and each partition looks into its
own (`nisa.nc_n_gather`): no descriptor is made for an element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from neuron_tools.arrays import Bools, Ints
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.location import Location
from neuron_tools.compiler.codegen.movement import memory_to_update
from neuron_tools.compiler.codegen.slot import Slot, Transfer
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.hlo import Operation
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.records.program import DType, Engine, Memory, Opcode

ROW_BYTES_LIMIT = 16384
"""Bytes of a row that one tile holds per partition; longer rows are cut."""
INDEX_SHARE = 16
"""A block of indices takes at most one part in so many of a partition: batches' rows are made beside it."""


def generate_gather(context: Context, group: Group) -> None:
    """Indices to SBUF, rows straight from HBM to partitions, tiles out to HBM."""
    operation = group.operations[0]
    table, indices = operation.operands[:2]
    result = operation.results[0]
    if _looks_into_rows(context, operation):
        _generate_row_look_up(context, group)
        return
    hlo = context.hlo(group)
    context.define(result)
    count = context.type_of(result).element_count
    row = _together(context.type_of(table).shape, operation.attributes.get("slice_sizes", ()))
    source, target = context.location(table), context.locations[result]
    loop, partitions, elements, run = _row_loop(context, count, row, target.dtype.byte_count, hlo)
    numbers = operation.attributes.get("dimension_numbers", {})
    is_batched = bool(numbers.get("operand_batching_dims"))
    index_tile = _load_indices(context, loop, indices, partitions, is_batched=is_batched)
    dtype = chip_dtype(context.type_of(result).dtype)
    tile = loop.slot("rows", run * dtype.byte_count, dtype, extra_buffers=1)
    transfer = Transfer(
        context.software_queue(), Memory.HBM, Memory.SBUF, elements * source.dtype.byte_count,
        run * source.dtype.byte_count, partitions, source.purpose, source.dtype, source.tensor,
    )  # fmt: skip
    loop.step(Engine.GPSIMD, Opcode.DMA_TRIGGER, reads=(index_tile,), writes=(tile,), transfer=transfer,
              after=source.tokens)  # fmt: skip
    stored = loop.store(tile, _store(context, target, elements, run, partitions))
    loop.emit()
    context.complete(result, loop.completion(stored))


def _looks_into_rows(context: Context, operation: Operation) -> bool:
    """Whether each row of the table is looked into by its own indices, and fits a partition."""
    shape = context.type_of(operation.operands[0]).shape
    numbers = operation.attributes.get("dimension_numbers", {})
    batches = tuple(numbers.get("operand_batching_dims", ()))
    by_row = len(shape) > 1 and batches == tuple(range(len(shape) - 1))
    held = chip_dtype(context.type_of(operation.operands[0]).dtype).byte_count * shape[-1] if shape else 0
    is_read = context.plan.views.of(operation.operands[1]).root >= 0
    return (
        by_row
        and is_read
        and held <= ROW_BYTES_LIMIT
        and context.type_of(operation.results[0]).element_count > 0
    )


def _generate_row_look_up(context: Context, group: Group) -> None:
    """Rows and their indices to SBUF, 128 rows a tile; each partition looks up its own row."""
    operation = group.operations[0]
    table, indices = (context.location(context.plan.views.of(value).root) for value in operation.operands)
    result, shape = operation.results[0], context.type_of(operation.operands[0]).shape
    hlo = context.hlo(group)
    target = context.define(result)
    rows = context.type_of(operation.operands[0]).element_count // shape[-1]
    found = context.type_of(result).element_count // rows
    piece = min(found, ROW_BYTES_LIMIT // DType.I32.byte_count)
    pieces, size = -(-found // piece), context.core.sbuf_partitions
    loop = TileLoop(context, -(-rows // size) * pieces, hlo)
    index = np.arange(loop.iterations)
    partitions = np.minimum(size, rows - index // pieces * size)
    width = np.minimum(piece, found - index % pieces * piece)
    dtype = chip_dtype(context.type_of(result).dtype)
    row = loop.slot("row", shape[-1] * dtype.byte_count, dtype, version=index // pieces, extra_buffers=1)
    load = table.load(context.load_queue(table), partitions * shape[-1], shape[-1], partitions)
    loop.load(row, load, active=loop.first_of(row.version), after=table.tokens)
    places = _row_indices(context, loop, indices, partitions, width)
    tile = loop.slot("elements", piece * dtype.byte_count, dtype, extra_buffers=1)
    loop.step(Engine.GPSIMD, Opcode.LOCAL_GATHER, reads=(row, places), writes=(tile,), partitions=partitions,
              elements=width)  # fmt: skip
    stored = loop.store(tile, _store(context, target, partitions * width, piece, partitions))
    loop.emit()
    context.complete(result, loop.completion(stored))


def _row_indices(
    context: Context, loop: TileLoop, indices: Location, partitions: np.ndarray, width: np.ndarray
) -> Slot:
    """A tile's indices, in the 4 bytes that the engine reads."""
    piece, item = int(width.max()), indices.dtype.byte_count
    loaded = loop.slot("indices", piece * item, indices.dtype, extra_buffers=1)
    load = indices.load(context.load_queue(indices), partitions * width, piece, partitions)
    loop.load(loaded, load, after=indices.tokens)
    if item == DType.I32.byte_count:
        return loaded
    places = loop.slot("places", piece * DType.I32.byte_count, DType.I32)
    loop.step(Engine.VECTOR, Opcode.TENSOR_COPY, reads=(loaded,), writes=(places,), partitions=partitions,
              elements=width)  # fmt: skip
    return places


def generate_scatter(context: Context, group: Group) -> None:
    """Copy the operand unless it is updated in place, then combine rows with the updates and write them."""
    operation = group.operations[0]
    inputs = (len(operation.operands) - 1) // 2
    indices = operation.operands[inputs]
    numbers = operation.attributes.get("scatter_dimension_numbers", {})
    hlo = context.hlo(group)
    for position in range(inputs):
        operand, update = operation.operands[position], operation.operands[inputs + 1 + position]
        result = operation.results[position]
        target = memory_to_update(context, operand, result, hlo)
        ready = target.tokens
        combines = _combines(operation.regions)
        tokens = _scatter_rows(context, update, indices, target, ready, numbers, combines, hlo)
        context.complete(result, tokens)


def _scatter_rows(
    context: Context, update: int, indices: int, target: Location, copied: Mapping[int, int],
    numbers: Mapping[str, Any], combines: bool, hlo: int,
) -> dict[int, int]:  # fmt: skip
    count = context.type_of(update).element_count
    if count == 0:
        return {}
    source = context.location(update)
    row = _together(target.type.shape, _window_sizes(context, update, target, numbers))
    loop, partitions, elements, run = _row_loop(context, count, row, source.dtype.byte_count, hlo)
    is_batched = bool(numbers.get("input_batching_dims"))
    index_tile = _load_indices(context, loop, indices, partitions, is_batched=is_batched)
    dtype = chip_dtype(context.type_of(update).dtype)
    new = loop.slot("update", run * dtype.byte_count, dtype, extra_buffers=1)
    load = Transfer(
        context.load_queue(source), Memory.HBM, Memory.SBUF, elements * source.dtype.byte_count,
        run * source.dtype.byte_count, partitions, source.purpose, source.dtype, source.tensor,
    )  # fmt: skip
    loop.load(new, load, after=source.tokens)
    written = new
    queue = context.software_queue()
    item = target.dtype.byte_count
    if combines:
        old = loop.slot("rows", run * dtype.byte_count, dtype)
        fetch = Transfer(queue, Memory.HBM, Memory.SBUF, elements * item, run * item, partitions,
                         source.purpose, target.dtype, target.tensor)  # fmt: skip
        loop.step(Engine.GPSIMD, Opcode.DMA_TRIGGER, reads=(index_tile,), writes=(old,), transfer=fetch,
                  after=copied)  # fmt: skip
        written = loop.slot("sum", run * dtype.byte_count, dtype)
        loop.step(Engine.VECTOR, Opcode.TENSOR_TENSOR, reads=(old, new), writes=(written,),
                  partitions=partitions, elements=run)  # fmt: skip
    store = Transfer(queue, Memory.SBUF, Memory.HBM, elements * item, run * item, partitions,
                     target.store_purpose, target.dtype, target.tensor)  # fmt: skip
    stored = loop.step(Engine.GPSIMD, Opcode.DMA_TRIGGER, reads=(written, index_tile), transfer=store,
                       after=copied)  # fmt: skip
    loop.emit()
    return loop.completion(stored)


def _combines(regions: Any) -> bool:
    """Whether a scatter adds to what is there (any body that is not "return the update")."""
    return any(region.operations for region in regions)


def _window_sizes(context: Context, update: int, target: Location, numbers: Mapping[str, Any]) -> list[int]:
    """Extent of a scatter's window along each axis of the operand."""
    shape = context.type_of(update).shape
    extents = iter([shape[axis] for axis in numbers.get("update_window_dims", ())])
    single = {*numbers.get("inserted_window_dims", ()), *numbers.get("input_batching_dims", ())}
    return [1 if axis in single else next(extents, 1) for axis in range(len(target.type.shape))]


def _together(shape: Sequence[int], window: Sequence[int]) -> int:
    """Elements of a window that lie together in memory."""
    elements = 1
    for extent, size in zip(reversed(shape), reversed(window)):
        elements *= size
        if size != extent:
            break
    return max(1, elements)


def _row_loop(
    context: Context, count: int, row: int, item: int, hlo: int
) -> tuple[TileLoop, np.ndarray, np.ndarray, int]:
    """(loop, partitions, elements, elements per row piece): one row piece to a partition."""
    run = min(row, max(1, ROW_BYTES_LIMIT // item))
    pieces = -(-row // run)
    rows = count // row * pieces
    size = context.core.sbuf_partitions
    loop = TileLoop(context, -(-rows // size), hlo)
    partitions = np.minimum(size, rows - np.arange(loop.iterations) * size)
    elements = partitions * run
    elements[-1] = max(1, count - int(elements[:-1].sum()))
    return loop, partitions, elements, run


def _load_indices(
    context: Context, loop: TileLoop, indices: int, partitions: np.ndarray, *, is_batched: bool
) -> Slot:
    """Indices, of which each tile uses its own column, brought block by block; a single one where all fit.

    Of batches the first row is added on chip.
    """
    block, columns = _index_blocks(context, loop.iterations)
    first = loop.first_of(block)
    slot = loop.slot("indices", 4 * int(columns.max()), DType.I32, version=block)
    count = context.type_of(indices).element_count
    view = context.plan.views.of(indices)
    if view.root < 0 or count == 0:
        loop.step(Engine.GPSIMD, Opcode.IOTA, writes=(slot,), elements=columns, active=first)
        return slot
    location = context.location(indices)
    slot.tensor = location.tensor
    item = location.dtype.byte_count
    ends = count * (np.flatnonzero(first) + columns[first]) // loop.iterations
    transfer = Transfer(
        context.load_queue(location), Memory.HBM, Memory.SBUF, item * np.diff(ends, prepend=0)[block],
        item * int(columns.max()), int(partitions.max()), location.purpose, location.dtype, location.tensor,
    )  # fmt: skip
    loop.load(slot, transfer, active=first, after=location.tokens)
    return _rows_of_batches(loop, slot, columns, first) if is_batched else slot


def _index_blocks(context: Context, tiles: int) -> tuple[Ints, Ints]:
    """(tiles,) the block of indices of each tile, and how many columns that has: about equally many."""
    most = context.core.sbuf_bytes_per_partition // INDEX_SHARE // DType.I32.byte_count
    block = np.arange(tiles) * -(-tiles // most) // tiles
    return block, np.bincount(block)[block]


def _rows_of_batches(loop: TileLoop, indices: Slot, columns: Ints, first: Bools) -> Slot:
    """Indices within batches as rows of the whole table: where each batch begins is counted meanwhile."""
    size, block = indices.bytes_per_partition, indices.version
    begins, rows = (loop.slot(name, size, DType.I32, version=block) for name in ("begins", "rows"))
    loop.step(Engine.GPSIMD, Opcode.IOTA, writes=(begins,), elements=columns, active=first)
    loop.step(Engine.VECTOR, Opcode.TENSOR_TENSOR, reads=(indices, begins), writes=(rows,), elements=columns,
              active=first)  # fmt: skip
    return rows


def _store(
    context: Context, target: Location, elements: np.ndarray, run: int, partitions: np.ndarray
) -> Transfer:
    item = target.dtype.byte_count
    return Transfer(
        context.store_queue(engine=Engine.SYNC),
        Memory.SBUF,
        Memory.HBM,
        elements * item,
        run * item,
        partitions,
        target.store_purpose,
        target.dtype,
        target.tensor,
    )
