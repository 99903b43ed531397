"""The iteration space of a loop group, and how it lies on the chip."""

from __future__ import annotations

from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.micro import reduction_kind
from neuron_tools.compiler.codegen.space import Space, flat_space, row_space
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.hlo import Operation
from neuron_tools.compiler.passes.groups import Group, Shape, reduction_domain

LONGEST_STRETCH_BYTES = 4096
"""What a partition takes at a time: longer descriptors move no faster, and the engines begin early and end
late by a tile's time each."""


def group_space(context: Context, group: Group) -> Space:
    """The space of a loop group and how it lies on the chip."""
    types = (context.type_of(value).dtype for value in _in_tiles(context, group))
    item_bytes = max((chip_dtype(dtype).byte_count for dtype in types), default=4)
    partitions = context.core.sbuf_partitions
    reductions = [op for op in group.operations if op.opcode in ("reduce", "moments")]
    if group.domain is None:
        return flat_space(max(1, group.element_count), item_bytes, partitions)
    reduces_rows = any(group.shapes[op.results[0]] is Shape.ROW for op in reductions)
    segment = min([group.domain.rows, *(_segment(context, group, op) for op in reductions)])
    return row_space(
        group.domain, item_bytes, segment=segment, reduces_rows=reduces_rows, partitions=partitions
    )


def _in_tiles(context: Context, group: Group) -> list[int]:
    """What a loop's tiles hold: its values, or what it reads where it only sums that up over all rows."""
    made = [value for value, shape in group.shapes.items() if shape is not Shape.LATE]
    read = (context.plan.views.of(value).root for op in group.operations for value in op.operands)
    return made or [root for root in read if root >= 0]


def _segment(context: Context, group: Group, operation: Operation) -> int:
    """Rows over which a reduction over rows runs; all rows for other reductions."""
    assert group.domain is not None
    form = reduction_domain(operation, context.module)
    results = context.type_of(operation.results[0]).element_count
    if form is None or form[1] is not Shape.LATE or form[0] is None or results < group.domain.columns:
        return group.domain.rows
    return max(1, group.domain.rows // max(1, results // group.domain.columns))


def images_on_partitions(group: Group, space: Space, item_bytes: int) -> Space:
    """Channels of images, where a channel of one image may be a short descriptor: several to a partition.

    An image's channels lie together in HBM. Each partition takes some of one image, and what it has summed
    up is joined with what the partitions of the other images have.
    """
    reductions = [op for op in group.operations if op.opcode in ("reduce", "moments")]
    sums = all(op.opcode == "moments" or reduction_kind(op) == "add" for op in reductions)
    by_row = all(group.shapes[op.results[0]] is Shape.ROW for op in reductions)
    in_pieces = space.run < space.columns
    if not (reductions and sums and by_row and in_pieces and space.segment == space.rows):
        return space
    return space.in_images(LONGEST_STRETCH_BYTES // item_bytes, item_bytes)
