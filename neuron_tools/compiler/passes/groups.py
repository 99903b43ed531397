"""Groups: operations that become one loop over tiles, their iteration space, and the plan of all groups."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from neuron_tools.compiler.graph import operands_of
from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.compiler.passes.attention import AttentionBlock
from neuron_tools.compiler.views import Block, Views, merged_blocks
from neuron_tools.frozen import frozen

ONE_PARTITION_ELEMENTS = 2048
"""A full reduction of no more elements than this stays on one partition, so that its users can join it."""
ENOUGH_ROWS = 128
"""Rows that all partitions of a NeuronCore have work with."""
FOLDED_ROWS = 32
FOLDED_ELEMENTS = 8192
"""Reductions over few rows, too few to fill the partitions, of which many elements remain, are folded."""


@frozen
class Domain:
    """Iteration space: `outer` repetitions of `rows` (on partitions) x `columns` (contiguous)."""

    outer: int
    rows: int
    columns: int


class Shape(Enum):
    """What a value is to its group's iteration space."""

    FULL = "full"  # one element per position
    ROW = "row"  # one element per row
    LATE = "late"  # complete only when all rows have been seen


@dataclass
class Group:
    """Operations that run as one loop (or one special lowering)."""

    kind: str  # "loop", "dot", "convolution", or the opcode of a single operation
    operations: list[Operation] = field(default_factory=list)
    domain: Domain | None = None
    element_count: int = 0
    shapes: dict[int, Shape] = field(default_factory=dict)  # values made here
    ancestors: int = 0  # bit set of groups that must come before
    outputs: tuple[int, ...] = ()
    attention: AttentionBlock | None = None

    @property
    def framework(self) -> tuple[int, ...]:
        """Framework rows of the operations, each once."""
        return tuple(dict.fromkeys(row for operation in self.operations for row in operation.framework))


@dataclass(frozen=True)
class FusionPlan:
    """Groups in a valid order, and how every value is read.

    Attributes:
        in_place: Result of an update -> the value whose memory it is written into.
    """

    module: Module
    groups: tuple[Group, ...]
    views: Views
    made_by: Mapping[int, Operation]
    in_place: Mapping[int, int] = field(default_factory=dict)

    @cached_property
    def reader_counts(self) -> Counter[int]:
        """How many operations read each value in memory, directly or through what moves it lazily."""
        counts: Counter[int] = Counter()
        for group in self.groups:
            for operation in group.operations:
                read = {self.views.layout(value).root for value in operands_of(operation)}
                counts.update(read | {self.views.of(value).root for value in operands_of(operation)})
        counts.update({self.views.layout(value).root for value in self.module.results})
        return counts


def reduction_domain(operation: Operation, module: Module) -> tuple[Domain | None, Shape] | None:
    """Iteration space that a reduction demands and what its result is; None if no loop has that form."""
    shape = module.shape_of(operation.operands[0])
    reduced = set(operation.attributes.get("dimensions", ()))
    blocks = merged_blocks([(extent, axis not in reduced) for axis, extent in enumerate(shape)])
    extents = [block.extent for block in blocks]
    match [block.real for block in blocks]:
        case [] | [False]:
            if 1 < math.prod(extents) <= ONE_PARTITION_ELEMENTS:
                return Domain(1, 1, extents[0]), Shape.ROW
            return None, Shape.LATE
        case [True]:
            return Domain(1, extents[0], 1), Shape.ROW
        case [True, False]:
            return Domain(1, extents[0], extents[1]), Shape.ROW
        case [False, True, False]:
            return Domain(extents[0], extents[1], extents[2]), Shape.ROW
        case [False, True] if not _is_folded(extents[0], extents[1]):
            return Domain(1, extents[0], extents[1]), Shape.LATE
        case [True, False, True] if not _is_folded(extents[1], extents[0] * extents[2]):
            return Domain(1, extents[0] * extents[1], extents[2]), Shape.LATE
    return None


def _is_folded(rows: int, kept: int) -> bool:
    """Whether a reduction over rows combines them elementwise, instead of across partitions."""
    return rows <= FOLDED_ROWS and kept >= FOLDED_ELEMENTS


def row_domain(operation: Operation, module: Module) -> Domain:
    """Iteration space with one row per row of an operation's result."""
    type_ = module.values[operation.results[0]].type
    columns = max(1, type_.shape[-1])
    return Domain(1, type_.element_count // columns, columns)


def broadcast_domain(blocks: tuple[Block, ...]) -> Domain | None:
    """Iteration space in which a repeated operand is a row or a column vector, or whole inside each row.

    A few repetitions of something large, or a few elements each repeated often, would leave most partitions
    without a row: they are read as they lie, for which any space does (None).
    """
    extents = [block.extent for block in blocks]
    match [block.real for block in blocks]:
        case [False, True] | [True, False] if _is_folded(extents[0], extents[1]):
            return None
        case [True, False] | [False, True]:
            return Domain(1, extents[0], extents[1])
        case [False, True, False]:
            return Domain(extents[0], extents[1], extents[2])
        case [True, *_] if len(extents) > 2 and extents[0] >= ENOUGH_ROWS:
            return Domain(1, extents[0], math.prod(extents[1:]))
    return None


def dot_columns(operation: Operation, module: Module) -> int:
    """Columns of a dot's result: the product of the right operand's free dimensions."""
    numbers = operation.attributes.get("dot_dimension_numbers", {})
    right = module.shape_of(operation.operands[1])
    used = set(numbers.get("rhs_batching_dimensions", ())) | set(
        numbers.get("rhs_contracting_dimensions", ())
    )
    return math.prod(extent for axis, extent in enumerate(right) if axis not in used)


def convolution_domain(operation: Operation, module: Module) -> Domain | None:
    """Iteration space of a convolution's result: channels are rows; None for unknown layouts."""
    numbers = operation.attributes.get("dimension_numbers")
    if not isinstance(numbers, Mapping) or "f" not in numbers.get("output", ()):
        return None
    shape = module.shape_of(operation.results[0])
    axis = numbers["output"].index("f")
    return Domain(math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
