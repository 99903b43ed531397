"""Code generation for operations that only move data: DMA inside HBM, with the descriptors strides demand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from neuron_tools.compiler.allocate import latest
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.location import Location
from neuron_tools.compiler.codegen.planes import find_planes, move_planes
from neuron_tools.compiler.codegen.slot import Transfer
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.compiler.views import slice_run
from neuron_tools.records.program import Engine, Memory, Opcode

PIECE_BYTES = 4 << 20
"""Largest single transfer: longer ones are split over the rings."""


def generate_slice(context: Context, group: Group) -> None:
    """Copy a slice."""
    operation = group.operations[0]
    run = slice_run(operation, context.type_of(operation.operands[0]).shape)
    source, result = operation.operands[0], operation.results[0]
    if not _moves_planes(context, group, (result, source), run, fills=False):
        _move(context, group, [(source, run)], size_of=result)


def generate_concatenate(context: Context, group: Group) -> None:
    """Copy each operand to its place."""
    operation = group.operations[0]
    axis = int(operation.attributes.get("dimension", 0))
    pieces = []
    for value in operation.operands:
        pieces.append((value, math.prod(context.type_of(value).shape[axis:])))
    _move(context, group, pieces)


def generate_pieces(context: Context, group: Group) -> None:
    """Emit nothing: whoever reads the concatenation loads its pieces from where they lie.

    All loads are booked on the largest piece; they wait for all of them.
    """
    operation = group.operations[0]
    places = [context.location(value) for value in operation.operands]
    largest = max(places, key=lambda place: place.type.element_count)
    tokens: dict[int, int] = {}
    for place in places:
        tokens = latest(tokens, place.tokens)
    type_ = context.type_of(operation.results[0])
    context.locations[operation.results[0]] = Location(largest.tensor, type_, largest.kind, tokens)


def generate_pad(context: Context, group: Group) -> None:
    """Fill the result with the padding value, then copy the operand to its place; or what is left of it."""
    operation = group.operations[0]
    run = _inner_run(context, operation.operands[0], operation.results[0])
    if any(operation.attributes.get("interior_padding", ())):
        run = 1
    source, result = operation.operands[0], operation.results[0]
    fills = context.type_of(result).element_count > context.type_of(source).element_count
    sides = (source, result) if fills else (result, source)
    if not _moves_planes(context, group, sides, run, fills=fills):
        _move(context, group, [(source, run)], fill=True, size_of=source if fills else result)


def _moves_planes(context: Context, group: Group, sides: tuple[int, int], run: int, *, fills: bool) -> bool:
    """Move a pad or a slice as whole planes where that is quicker; False, and nothing done, elsewhere.

    Args:
        context: Where code goes.
        group: The operation alone.
        sides: The values of the smaller and of the larger side.
        run: Elements that lie together on both.
        fills: Whether it is a pad.
    """
    small, large = (context.type_of(value) for value in sides)
    planes = find_planes(context.core, small, large, run, fills=fills)
    if planes is None:
        return False
    operation, hlo = group.operations[0], context.hlo(group)
    target = context.define(operation.results[0])
    move_planes(context, context.location(operation.operands[0]), target, planes, hlo, fills=fills)
    return True


def generate_dynamic_slice(context: Context, group: Group) -> None:
    """Copy a slice whose start is known only while running: GpSimd makes the descriptors."""
    operation = group.operations[0]
    run = _inner_run(context, operation.results[0], operation.operands[0])
    _move(context, group, [(operation.operands[0], run)], dynamic=True, size_of=operation.results[0])


def generate_dynamic_update_slice(context: Context, group: Group) -> None:
    """Put the update over the operand: over itself where nobody reads it any more, else over a copy."""
    operation = group.operations[0]
    operand, update = operation.operands[:2]
    result, hlo = operation.results[0], context.hlo(group)
    target, source = memory_to_update(context, operand, result, hlo), context.location(update)
    size = source.type.element_count * source.dtype.byte_count
    if size:
        run = _inner_run(context, update, operand) * source.dtype.byte_count
        done = _copy(context, source, target, size, run, hlo, after=target.tokens, dynamic=True)
        context.complete(result, done)


def memory_to_update(context: Context, operand: int, result: int, hlo: int) -> Location:
    """The memory of an update's result with the operand's content, complete with its tokens."""
    updated = context.plan.in_place.get(result)
    if updated is not None:
        return context.take_over(result, updated)
    target = context.define(result)
    if context.plan.views.of(operand).root < 0:
        target.tokens = fill_tensor(context, target, hlo)
    else:
        target.tokens = copy_tensor(context, context.location(operand), target, hlo)
    return target


def generate_copy(context: Context, group: Group) -> None:
    """Copy a whole tensor."""
    value = group.operations[0].operands[0]
    _move(context, group, [(value, context.type_of(value).element_count)])


def generate_reverse(context: Context, group: Group) -> None:
    """Copy with descending addresses along the reversed dimensions."""
    operation = group.operations[0]
    shape = context.type_of(operation.operands[0]).shape
    reversed_axes = set(operation.attributes.get("dimensions", ()))
    run = 1
    for axis in range(len(shape) - 1, -1, -1):
        if axis in reversed_axes and shape[axis] > 1:
            break
        run *= shape[axis]
    _move(context, group, [(operation.operands[0], run)])


def _inner_run(context: Context, small: int, large: int) -> int:
    """Elements of `small` that lie together inside `large`: equal trailing dimensions and one more."""
    run = 1
    pairs = zip(reversed(context.type_of(small).shape), reversed(context.type_of(large).shape))
    for inner, outer in pairs:
        run *= inner
        if inner != outer:
            break
    return max(run, 1)


def _move(
    context: Context,
    group: Group,
    pieces: list[tuple[int, int]],
    *,
    fill: bool = False,
    dynamic: bool = False,
    size_of: int | None = None,
) -> None:
    """HBM-to-HBM transfers of (value, contiguous elements) pieces into the group's result."""
    result = group.operations[0].results[0]
    hlo = context.hlo(group)
    target = context.define(result)
    tokens: dict[int, int] = {}
    if fill:
        tokens = fill_tensor(context, target, hlo)
        context.complete(result, tokens)
    for value, run in pieces:
        count = context.type_of(value if size_of is None else size_of).element_count
        if count == 0:
            continue
        source = context.location(value)
        item = source.dtype.byte_count
        tokens_of_piece = _copy(
            context, source, target, count * item, run * item, hlo, after=tokens, dynamic=dynamic
        )
        context.complete(result, tokens_of_piece)


def copy_tensor(context: Context, source: Location, target: Location, hlo: int) -> dict[int, int]:
    """Copy a whole tensor inside HBM; returns what completes it."""
    size = source.type.element_count * source.dtype.byte_count
    return _copy(context, source, target, size, size, hlo) if size else {}


def _copy(
    context: Context, source: Location, target: Location, size: int, run_bytes: int, hlo: int, *,
    after: Mapping[int, int] | None = None, dynamic: bool = False,
) -> dict[int, int]:  # fmt: skip
    """An HBM-to-HBM transfer of `size` bytes in pieces over the rings."""
    splits = max(1, -(-size // PIECE_BYTES))
    loop = TileLoop(context, splits, hlo)
    sizes = np.full(splits, size // splits, np.int64)
    sizes[-1] = size - int(sizes[:-1].sum())
    queue = context.software_queue() if dynamic else context.load_queue()
    transfer = Transfer(
        queue,
        Memory.HBM,
        Memory.HBM,
        sizes,
        max(1, min(run_bytes, _shared_bytes(context, int(sizes[-1])))),
        0,
        target.store_purpose,
        source.dtype,
        target.tensor,
        strided=run_bytes < size,
    )
    waits = [*source.tokens.values(), *(after or {}).values()]
    step = loop.step(context.queue_engine(queue), Opcode.DMA_TRIGGER, transfer=transfer, after=waits)
    loop.emit()
    return loop.completion(step)


def _shared_bytes(context: Context, size: int) -> int:
    """Bytes of a descriptor with which all DMA engines take part in a transfer, in whole packets."""
    packet = context.core.dma_maximum_packet_bytes
    return -(-size // (packet * context.core.dma_engines)) * packet


def fill_tensor(
    context: Context, location: Location, hlo: int, *, count: int | None = None, run: int | None = None
) -> dict[int, int]:
    """Write a constant to a tensor: one SBUF tile, stored again and again.

    Args:
        context: Where code goes.
        location: The tensor.
        hlo: The row that this belongs to.
        count: Elements to write; all of them by default.
        run: How many of these lie together; all of them by default.

    Returns:
        What completes it.
    """
    item = location.dtype.byte_count
    count = location.type.element_count if count is None else count
    partitions = min(context.core.sbuf_partitions, count)
    columns = min(-(-count // partitions), 16384 // item, run or count)
    splits = -(-count // (columns * partitions))
    loop = TileLoop(context, splits, hlo)
    tile = loop.slot("fill", columns * item, location.dtype, stationary=True)
    first = np.arange(splits) == 0
    loop.step(
        Engine.GPSIMD, Opcode.MEMSET, writes=(tile,), partitions=partitions, elements=columns, active=first
    )
    size = np.full(splits, columns * partitions, np.int64)
    size[-1] = count - int(size[:-1].sum())
    transfer = Transfer(
        context.store_queue(), Memory.SBUF, Memory.HBM, size * item, columns * item, partitions,
        location.store_purpose, location.dtype, location.tensor,
    )  # fmt: skip
    step = loop.store(tile, transfer)
    loop.emit()
    return loop.completion(step)


MOVEMENTS: Mapping[str, Callable[[Context, Group], None]] = {
    "copy": generate_copy,
    "slice": generate_slice,
    "concatenate": generate_concatenate,
    "pieces": generate_pieces,
    "pad": generate_pad,
    "dynamic_slice": generate_dynamic_slice,
    "dynamic_update_slice": generate_dynamic_update_slice,
    "reverse": generate_reverse,
}
"""Generators of the movement operations by opcode."""
