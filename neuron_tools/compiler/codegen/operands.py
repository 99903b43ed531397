"""Operands of products: sizes, and how each side lies in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.location import Location
from neuron_tools.compiler.codegen.residents import Resident
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.views import Factor
from neuron_tools.frozen import frozen
from neuron_tools.records.program import DType


@frozen
class Sizes:
    """A batched matrix product: `batch` x (rows x depth) @ (depth x columns)."""

    batch: int
    rows: int
    depth: int
    columns: int

    @property
    def flops(self) -> int:
        """2 x multiply-accumulates."""
        return 2 * self.batch * self.rows * self.depth * self.columns


@frozen
class Operand:
    """One side of the product.

    Attributes:
        value, root: What is read, and the value in memory that it is read from (-1: a constant).
        turned: Contraction runs along memory, so blocks must be transposed.
        run: Elements that lie together: along the free dimensions, or along the contraction if `turned`.
        dtype: Element type on chip.
        is_vector: One free element: contraction goes straight to partitions, nothing to turn.
        is_repeated: One element in memory stands for all: it is loaded once and spread on chip.
        turned_copy: Where a copy turned beforehand lies.
        resident: Where it is in SBUF, rows on partitions: the Tensor engine turns it.
        together: Last batches that lie next to one another: of each its contraction if `turned`, else its
            free dimensions.
        is_tiled: What is loaded at once lies together: the compiler wrote the operand so.
    """

    value: int
    root: int
    turned: bool
    run: int
    dtype: DType
    is_vector: bool
    is_repeated: bool = False
    turned_copy: Location | None = None
    resident: Resident | None = None
    together: int = 1
    is_tiled: bool = False

    @property
    def method(self) -> str:
        """How a block comes to lie with the contraction on partitions: natural, dma, tensor or resident."""
        if self.resident is not None:
            return "resident"
        if not self.turned or self.is_vector or self.is_repeated or self.turned_copy is not None:
            return "natural"
        return "dma" if self.dtype.byte_count <= 2 else "tensor"


def describe(
    context: Context, operands: Sequence[int], numbers: dict[str, tuple[int, ...]]
) -> tuple[Operand, Operand, Sizes]:
    """Operands and sizes of a dot_general."""
    sides = []
    for value, name in zip(operands, ("lhs", "rhs")):
        shape = context.type_of(value).shape
        batching = numbers.get(f"{name}_batching_dimensions", ())
        contracting = numbers.get(f"{name}_contracting_dimensions", ())
        free = [axis for axis in range(len(shape)) if axis not in batching and axis not in contracting]
        depth = prod(shape[axis] for axis in contracting)
        batch = prod(shape[axis] for axis in batching)
        operand = _operand(context, value, shape, contracting, free, batching)
        sides.append((operand, batch, depth, prod(shape[axis] for axis in free)))
    (left, batch, depth, rows), (right, _, _, columns) = sides
    return left, right, Sizes(batch, rows, depth, columns)


def _operand(
    context: Context, value: int, shape: Sequence[int], contracting: Sequence[int], free: Sequence[int],
    batching: Sequence[int] = (),
) -> Operand:  # fmt: skip
    layout = context.plan.views.layout(value)
    by_stride = sorted(
        (stride, extent, axis in contracting)
        for axis, dim in enumerate(layout.dims)
        for extent, stride in dim
        if stride
    )
    turned = bool(by_stride) and by_stride[0][2]
    run = 1
    for stride, extent, contracts in by_stride:
        if stride != run or contracts != turned:
            break
        run *= extent
    is_vector = prod(shape[axis] for axis in free) == 1
    dtype = chip_dtype(context.type_of(value if layout.root < 0 else layout.root).dtype)
    batches = [factor for axis in batching for factor in layout.dims[axis]]
    inner = contracting if turned else free
    together = _together(batches, prod(shape[axis] for axis in inner))
    return Operand(value, layout.root, turned, run, dtype, is_vector, layout.is_repeated, together=together)


def neighbours(factors: Iterable[Factor]) -> int:
    """Elements that lie together in memory, of those that (extent, stride) factors reach.

    Example:
        >>> neighbours([(64, 9), (3, 3), (3, 1)])
        576
    """
    run = 1
    for extent, stride in sorted(factors, key=lambda factor: factor[1]):
        if stride == run:
            run *= extent
    return run


def _together(batches: Sequence[tuple[int, int]], run: int) -> int:
    """The last batches, in the order of their (extent, stride) factors, whose runs follow one another.

    Example:
        >>> _together([(8, 256), (2, 128)], 128)
        16
    """
    count = 1
    for extent, stride in reversed(batches):
        if stride != run * count:
            break
        count *= extent
    return count
