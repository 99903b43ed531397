"""How the rows and columns of a matrix lie in a value.

A product reads its left operand as rows x contraction; attention makes and reads heads, which are columns of
tokens. Where both sides mean the same rows, a result can stay in SBUF in between, tokens on partitions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from neuron_tools.compiler.hlo import TensorType
from neuron_tools.compiler.passes.groups import FusionPlan, Group
from neuron_tools.compiler.views import Factor, Layout
from neuron_tools.frozen import frozen


class Values(Protocol):
    """What is known of values while code is generated: a context."""

    plan: FusionPlan

    def type_of(self, value: int) -> TensorType:
        """Type of a value."""


@frozen
class RowOrder:
    """Factors (extent, stride in the value) of a matrix's rows and columns, outermost first, merged."""

    rows: tuple[Factor, ...]
    columns: tuple[Factor, ...]

    @property
    def row_count(self) -> int:
        """Rows of the matrix."""
        return math.prod(extent for extent, _ in self.rows)

    @property
    def column_count(self) -> int:
        """Columns of the matrix."""
        return math.prod(extent for extent, _ in self.columns)

    @property
    def run(self) -> int:
        """Elements of a row that lie together in the value."""
        return self.columns[-1][0] if self.columns and self.columns[-1][1] == 1 else 1


@frozen
class Heads:
    """`batch` x `heads` matrices of `rows` x `columns` that are the columns of tokens."""

    batch: int
    heads: int
    rows: int
    columns: int

    def order(self) -> RowOrder:
        """Tokens x (heads x columns), as the product that made them has it."""
        return plain_order(self.batch * self.rows, self.heads * self.columns)


def plain_order(rows: int, columns: int) -> RowOrder:
    """A matrix as it lies in memory."""
    return RowOrder(merged([(rows, columns)]), merged([(columns, 1)]))


def channel_order(layout: Layout, numbers: Sequence[str]) -> RowOrder | None:
    """Channels x (images x pixels) of an image or a convolution's result, in its root.

    Args:
        layout: Where its elements lie.
        numbers: Name of each of its dimensions, "b", "f", "0", "1" and so on, as convolutions state them.
    """
    if "f" not in numbers or "b" not in numbers or len(numbers) != len(layout.dims):
        return None
    spatial = sorted((name for name in numbers if name.isdigit()), key=int)
    columns = [numbers.index(name) for name in ("b", *spatial)]
    return _order_of(layout, [numbers.index("f")], columns)


def merged(factors: Iterable[Factor]) -> tuple[Factor, ...]:
    """Factors with those joined that follow one another; unit factors dropped.

    Example:
        >>> merged([(2, 12), (3, 4), (4, 1)])
        ((24, 1),)
    """
    result: list[Factor] = []
    for extent, stride in factors:
        if extent == 1:
            continue
        if result and result[-1][1] == extent * stride and stride:
            result[-1] = (result[-1][0] * extent, stride)
        else:
            result.append((extent, stride))
    return tuple(result)


def left_order(context: Values, value: int, numbers: Mapping[str, Any]) -> RowOrder | None:
    """Rows x contraction of a product's left operand, in its root; None for batches of products."""
    if numbers.get("lhs_batching_dimensions", ()):
        return None
    layout = context.plan.views.layout(value)
    contracted = numbers.get("lhs_contracting_dimensions", ())
    free = [axis for axis in range(len(layout.dims)) if axis not in contracted]
    return _order_of(layout, free, contracted)


def _order_of(layout: Layout, rows: Sequence[int], columns: Sequence[int]) -> RowOrder | None:
    order = RowOrder(
        *(merged(factor for axis in axes for factor in layout.dims[axis]) for axes in (rows, columns))
    )
    count = 1
    for extent, stride in sorted((*order.rows, *order.columns), key=lambda factor: factor[1]):
        if stride != count:
            return None  # not all of the root, each element once
        count *= extent
    return order


def heads_of(context: Values, value: int, sequence: int, head: int) -> Heads | None:
    """An operand of attention as columns of tokens; `sequence` and `head` are its inner axes."""
    layout = context.plan.views.layout(value)
    others = [axis for axis in range(len(layout.dims)) if axis not in (sequence, head)]
    batch = merged(factor for axis in others for factor in layout.dims[axis])
    rows, columns = merged(layout.dims[sequence]), merged(layout.dims[head])
    if len(rows) != 1 or len(columns) != 1 or not 1 <= len(batch) <= 2:
        return None
    (row_count, row_stride), (column_count, one), (heads, apart) = rows[0], columns[0], batch[-1]
    outer, outer_stride = batch[0] if len(batch) == 2 else (1, row_count * row_stride)
    fits = one == 1 and apart == column_count and row_stride == heads * column_count
    whole = outer_stride == row_count * row_stride
    return Heads(outer, heads, row_count, column_count) if fits and whole else None


def attention_operands(context: Values, group: Group) -> dict[int, Heads | None]:
    """Operand of an attention group's products -> the heads that it is."""
    block = group.attention
    assert block is not None
    found: dict[int, Heads | None] = {}
    for operation, side in ((block.scores, 0), (block.scores, 1), (block.values, 1)):
        numbers = operation.attributes.get("dot_dimension_numbers", {})
        value, name = operation.operands[side], ("lhs", "rhs")[side]
        contracted = numbers.get(f"{name}_contracting_dimensions", ())
        batching = numbers.get(f"{name}_batching_dimensions", ())
        free = [a for a in range(len(context.type_of(value).shape)) if a not in (*contracted, *batching)]
        if len(contracted) != 1 or len(free) != 1:
            found[value] = None
            continue
        axes = (free[0], contracted[0]) if operation is block.scores else (contracted[0], free[0])
        found[value] = heads_of(context, value, *axes)
    return found


def heads_result(order: RowOrder, rows: int, columns: int) -> Heads | None:
    """The heads of a result of attention that a product reads as rows of tokens; None if it does not."""
    if len(order.columns) != 2 or order.columns[1] != (columns, 1) or order.columns[0][1] != rows * columns:
        return None
    heads = order.columns[0][0]
    if order.rows[-1:] != ((rows, columns),) or len(order.rows) > 2:
        return None
    if len(order.rows) == 2 and order.rows[0][1] != heads * rows * columns:
        return None
    return Heads(order.rows[0][0] if len(order.rows) == 2 else 1, heads, rows, columns)
