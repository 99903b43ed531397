"""Code generation for sliding windows: pooling, running sums as scans, the places of maxima found again."""

from __future__ import annotations

import math

from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.pooling import generate_pooling
from neuron_tools.compiler.codegen.space import Space, flat_space, in_proportion, row_space
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.passes.groups import Domain, Group
from neuron_tools.records.program import Engine, Flag, Opcode


def generate_reduce_window(context: Context, group: Group) -> None:
    """Emit a reduce_window: a scan if it accumulates along one dimension, else pooling."""
    operation = group.operations[0]
    shape = context.type_of(operation.operands[0]).shape
    window = tuple(operation.attributes.get("window_dimensions", ()))
    wide = [axis for axis, extent in enumerate(window) if extent > 1]
    if len(wide) == 1 and window[wide[0]] == shape[wide[0]] and _keeps_shape(context, operation.operands[0],
                                                                          operation.results[0]):  # fmt: skip
        axis = wide[0]
        rows = math.prod(shape[:axis]) * (math.prod(shape[axis + 1 :]))
        _pass_over(context, group, Opcode.TENSOR_TENSOR_SCAN, 1, rows=rows, columns=shape[axis])
        return
    generate_pooling(context, group)


def generate_select_and_scatter(context: Context, group: Group) -> None:
    """The backward of max pooling: find each window's maximum again, add the gradient there."""
    window = tuple(group.operations[0].attributes.get("window_dimensions", ()))
    _pass_over(context, group, Opcode.TENSOR_TENSOR, 2 * math.prod(window))


def _keeps_shape(context: Context, operand: int, result: int) -> bool:
    return context.type_of(operand).shape == context.type_of(result).shape


def _pass_over(
    context: Context, group: Group, opcode: Opcode, reads_per_result: int, *, rows: int = 0, columns: int = 0
) -> None:
    """Load operand tiles, run one Vector instruction per tile that reads each result's window, store.

    `reads_per_result` elements enter the instruction for each result element (a window's elements, by a
    strided access pattern).
    """
    operation = group.operations[0]
    hlo = context.hlo(group)
    result = operation.results[0]
    operands = [v for v in operation.operands if context.type_of(v).element_count > 1]
    for value in operation.results:
        context.define(value)
    count = context.type_of(result).element_count
    target = context.locations[result]
    space = _space(context, count, target.dtype.byte_count, rows, columns)
    loop = TileLoop(context, space.iterations, hlo)
    share = space.tile_elements() / count
    loaded = []
    for value in operands:
        if context.plan.views.of(value).root < 0:
            continue
        location = context.location(value)
        dtype = chip_dtype(context.type_of(value).dtype)
        total = context.type_of(value).element_count
        elements = in_proportion(total, share)
        per_partition = int(-(-elements.max() // max(1, int(space.partition_counts().max()))))
        slot = loop.slot("operand", per_partition * dtype.byte_count, dtype, extra_buffers=1)
        slot.tensor = location.tensor
        transfer = location.load(context.load_queue(), elements, per_partition, space.partition_counts())
        loop.load(slot, transfer, after=location.tokens)
        loaded.append(slot)
    for value in operation.results:
        dtype = chip_dtype(context.type_of(value).dtype)
        size = int(space.elements_per_partition().max()) * dtype.byte_count
        made = loop.slot("result", size, dtype)
        loop.step(
            Engine.VECTOR,
            opcode,
            reads=loaded[:2],
            writes=(made,),
            partitions=space.partition_counts(),
            elements=space.elements_per_partition() * reads_per_result,
            flags=Flag.STRIDED if reads_per_result > 1 else Flag.NONE,
        )
        transfer = context.locations[value].store(
            context.store_queue(), space.tile_elements(), space.run_elements(), space.partition_counts()
        )
        loop.store(made, transfer)
    loop.emit()
    for value in operation.results:
        context.complete(value, loop.stored())


def _space(context: Context, count: int, item: int, rows: int, columns: int) -> Space:
    partitions = context.core.sbuf_partitions
    if rows and columns and rows * columns == count:
        space = row_space(
            Domain(1, rows, columns), item, segment=rows, reduces_rows=True, partitions=partitions
        )
        return space.with_chunk(min(columns, context.core.sbuf_bytes_per_partition // 64))
    space = flat_space(count, item, partitions)
    return space.with_chunk(max(1, min(space.chunk, 2048 // item)))
