"""Views: how an operand is read without being copied.

A chain of reshapes, broadcasts, slices and transposes in front of an operand costs nothing on the chip
when an access pattern can say the same. A `View` names the value at the end of the chain (its root) and
what of it is read, as blocks of the reader's flattened index space: real (different elements) or
repeated (stride 0).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.frozen import frozen

LAZY_OPCODES = frozenset({"constant", "iota", "broadcast_in_dim", "reshape", "slice", "transpose"})
"""Operations that need no instructions of their own where their users can read through them."""

_FLOAT_BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}


def is_lazy(operation: Operation, module: Module) -> bool:
    """Whether users read through an operation: movement, and widening (engines read any type at no cost)."""
    if operation.opcode != "convert":
        return operation.opcode in LAZY_OPCODES
    before = module.values[operation.operands[0]].type.dtype
    after = module.values[operation.results[0]].type.dtype
    return 0 < _FLOAT_BYTES.get(before, 0) <= _FLOAT_BYTES.get(after, 0)


@frozen
class Block:
    """`extent` consecutive positions of the flattened index space: real data or repeated."""

    extent: int
    real: bool


@frozen
class View:
    """An operand as its reader sees it.

    Attributes:
        root: The value read; -1 for a constant or an iota, which needs no memory.
        blocks: Real and repeated blocks of the reader's index space, outermost first, adjacent ones merged.
        run_elements: Elements of the root that lie together in memory (descriptor size of a load).
        is_plain: The whole root, in its order in memory (perhaps of a narrower type).
        is_same: Plain, and of the root's own type: the value needs no memory but the root's.
        generator: The constant or iota operation where root is -1.
    """

    root: int
    blocks: tuple[Block, ...]
    run_elements: int
    is_plain: bool = False
    is_same: bool = False
    generator: Operation | None = None

    @property
    def is_scalar(self) -> bool:
        """One element serves every position."""
        return not any(block.real and block.extent > 1 for block in self.blocks)


@frozen
class Spread:
    """What a stretch of a reader's positions needs of an operand: access patterns repeat it on chip.

    Attributes:
        count: Different elements.
        repeats_innermost: Whether neighbouring positions read the same element.
    """

    count: int
    repeats_innermost: bool


def spread(blocks: Sequence[Block], stretch: int) -> Spread | None:
    """The same for each stretch of so many positions, one after the other; None where they differ.

    The last stretch may be shorter.

    Example:
        >>> spread([Block(8, True), Block(16, False), Block(4, True)], 32)
        Spread(count=4, repeats_innermost=False)
    """
    count, remaining = 1, stretch
    for place, block in reversed(list(enumerate(blocks))):
        ends_within = remaining < block.extent and block.real and place == 0
        if remaining % block.extent and block.extent % remaining and not ends_within:
            return None
        taken = min(block.extent, remaining)
        count *= taken if block.real else 1
        remaining //= taken
        if remaining == 1:
            break
    return Spread(count, stretch > 1 and bool(blocks) and not blocks[-1].real) if remaining == 1 else None


def real_positions(blocks: Sequence[Block], positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Which of an operand's different elements stand at positions of the reader's index space.

    Example:
        >>> real_positions([Block(2, True), Block(3, False), Block(4, True)], np.array([0, 4, 12]))
        array([0, 0, 4])
    """
    found, stride, left = np.zeros_like(positions), 1, positions
    for block in reversed(blocks):
        if block.real:
            found = found + left % block.extent * stride
            stride *= block.extent
        left = left // block.extent
    return found


def merged_blocks(extents: Sequence[tuple[int, bool]]) -> tuple[Block, ...]:
    """Blocks of (extent, real) dimensions: unit dimensions dropped, equal neighbours merged."""
    blocks: list[Block] = []
    for extent, real in extents:
        if extent == 1:
            continue
        if blocks and blocks[-1].real == real:
            blocks[-1] = Block(blocks[-1].extent * extent, real)
        else:
            blocks.append(Block(extent, real))
    return tuple(blocks)


Factor = tuple[int, int]
"""(extent, stride in elements of the root); stride 0 repeats."""


@frozen
class Layout:
    """Where each element of a value lies in its root: per dimension the factors of its index, outer first.

    Attributes:
        root: The value in memory; -1 for a constant or an iota.
        dims: One tuple of factors per dimension; unit dimensions are empty.
        generator: The constant or iota where root is -1.
        path: The lazy operations between the value and its root, outermost first.
    """

    root: int
    dims: tuple[tuple[Factor, ...], ...]
    generator: Operation | None = None
    path: tuple[Operation, ...] = ()

    @property
    def factors(self) -> tuple[Factor, ...]:
        """Factors of all dimensions, outermost first."""
        return tuple(factor for dim in self.dims for factor in dim)

    @property
    def is_repeated(self) -> bool:
        """Whether one element in memory stands for all."""
        return self.root >= 0 and bool(self.factors) and not any(stride for _, stride in self.factors)


class Views:
    """Finds the view of any value of a module; answers are remembered."""

    def __init__(self, module: Module, made_by: Mapping[int, Operation]) -> None:
        self._module = module
        self._made_by = made_by
        self._layouts: dict[int, Layout] = {}
        self._views: dict[int, View] = {}

    def of(self, value: int) -> View:
        """The view through which an elementwise reader of `value` reads.

        A value whose elements are turned (memory order runs along another dimension) is its own root: it
        has to be turned by instructions. Dots use `layout` and turn what they read themselves.
        """
        view = self._views.get(value)
        if view is None:
            layout = self.layout(value)
            if layout.root != value and _is_turned(layout):
                layout = self._turned(value)
            view = self._views[value] = _view(layout)
        return view

    def _turned(self, value: int) -> Layout:
        """Over memory in which the elements have been turned: the value's own, or of what it reshapes."""
        operation, shape = self._made_by[value], contiguous(self._module.shape_of(value))
        if operation.opcode == "reshape" and _is_turned(self.layout(operation.operands[0])):
            return Layout(self._turned(operation.operands[0]).root, shape, path=(operation,))
        return Layout(value, shape)

    def layout(self, value: int) -> Layout:
        """Where the elements of `value` lie, read through every lazy operation that strides can express."""
        layout = self._layouts.get(value)
        if layout is None:
            layout = self._layouts[value] = self._find(value)
        return layout

    def factors_in_memory(self, operation: Operation) -> tuple[Factor, ...]:
        """Where the elements of a result with memory of its own lie in what it is reshaped or turned from."""
        inner = self.layout(operation.operands[0])
        rule = self._transpose if operation.opcode == "transpose" else self._reshape
        return tuple(factor for dim in rule(operation, inner) or () for factor in dim)

    def _find(self, value: int) -> Layout:
        operation = self._made_by.get(value)
        whole = Layout(value, contiguous(self._module.shape_of(value)))
        if operation is None or not is_lazy(operation, self._module):
            return whole
        if operation.opcode == "constant":
            return self._constant(operation, whole)
        if operation.opcode == "iota":
            axis = int(operation.attributes.get("iota_dimension", 0))
            dims = tuple(
                ((extent, int(index == axis)),) if extent > 1 else ()
                for index, extent in enumerate(self._module.shape_of(value))
            )
            return Layout(-1, dims, operation, (operation,))
        inner = self.layout(operation.operands[0])
        found: tuple[tuple[Factor, ...], ...] | None = getattr(self, f"_{operation.opcode}")(operation, inner)
        if found is None:
            return whole
        return Layout(inner.root, found, inner.generator, (operation, *inner.path))

    def _convert(self, operation: Operation, inner: Layout) -> tuple[tuple[Factor, ...], ...] | None:
        return inner.dims

    def _constant(self, operation: Operation, whole: Layout) -> Layout:
        value = operation.attributes.get("value")
        shape = self._module.shape_of(operation.results[0])
        if isinstance(value, tuple) or (value is None and whole.factors):
            return whole
        dims = tuple(((extent, 0),) if extent > 1 else () for extent in shape)
        return Layout(-1, dims, operation, (operation,))

    def _reshape(self, operation: Operation, inner: Layout) -> tuple[tuple[Factor, ...], ...] | None:
        return regrouped(inner.factors, self._module.shape_of(operation.results[0]))

    def _broadcast_in_dim(self, operation: Operation, inner: Layout) -> tuple[tuple[Factor, ...], ...] | None:
        placed = dict(zip(operation.attributes.get("broadcast_dimensions", ()), inner.dims))
        return tuple(
            placed[axis] if placed.get(axis) else ((extent, 0),) if extent > 1 else ()
            for axis, extent in enumerate(self._module.shape_of(operation.results[0]))
        )

    def _transpose(self, operation: Operation, inner: Layout) -> tuple[tuple[Factor, ...], ...] | None:
        return tuple(inner.dims[axis] for axis in operation.attributes["permutation"])

    def _slice(self, operation: Operation, inner: Layout) -> tuple[tuple[Factor, ...], ...] | None:
        sliced: list[tuple[Factor, ...]] = []
        strides = operation.attributes["strides"]
        shapes = zip(
            self._module.shape_of(operation.operands[0]), self._module.shape_of(operation.results[0])
        )
        for (before, after), step, dim in zip(shapes, strides, inner.dims):
            if before == after or after == 1:
                sliced.append(dim if before == after else ())
            elif len(dim) == 1:
                sliced.append(((after, dim[0][1] * step),))
            else:
                return None
        return tuple(sliced)


def contiguous(shape: Sequence[int]) -> tuple[tuple[Factor, ...], ...]:
    """Factors of a dense row-major tensor."""
    stride = 1
    dims: list[tuple[Factor, ...]] = []
    for extent in reversed(shape):
        dims.append(((extent, stride),) if extent > 1 else ())
        stride *= extent
    return tuple(reversed(dims))


def regrouped(factors: Sequence[Factor], shape: Sequence[int]) -> tuple[tuple[Factor, ...], ...] | None:
    """Factors dealt out to the dimensions of a new shape; None if one would have to be cut unevenly.

    Example:
        >>> regrouped([(12, 1)], (3, 4))
        (((3, 4),), ((4, 1),))
    """
    pending = list(factors)
    dims: list[tuple[Factor, ...]] = []
    for extent in reversed(shape):
        needed, dim = extent, []
        while needed > 1:
            if not pending:
                return None
            size, stride = pending.pop()
            if needed % size == 0:
                taken = size
            elif size % needed == 0:
                taken = needed
                pending.append((size // needed, stride * needed))
            else:
                return None
            dim.append((taken, stride))
            needed //= taken
        dims.append(tuple(reversed(dim)))
    return None if pending else tuple(reversed(dims))


def _view(layout: Layout) -> View:
    blocks = merged_blocks([(extent, stride != 0) for extent, stride in layout.factors])
    plain = _is_dense(layout)
    same = plain and all(operation.opcode != "convert" for operation in layout.path)
    return View(layout.root, blocks, _run(layout.factors), plain, same, layout.generator)


def _run(factors: Sequence[Factor]) -> int:
    """Elements that lie together in reading order, repeated positions aside."""
    run = 1
    for extent, stride in reversed(factors):
        if stride == 0:
            continue
        if stride != run:
            break
        run *= extent
    return run


def _is_dense(layout: Layout) -> bool:
    """Whether the value is its whole root in order (slices excepted)."""
    count = math.prod(extent for extent, _ in layout.factors)
    only_reshapes = all(operation.opcode != "slice" for operation in layout.path)
    return only_reshapes and layout.root >= 0 and _run(layout.factors) == count


def _is_turned(layout: Layout) -> bool:
    """Whether memory order runs along a dimension that is not the innermost one read."""
    real = [stride for _, stride in layout.factors if stride]
    return layout.root >= 0 and len(real) > 1 and real[-1] != 1 and 1 in real


def slice_run(operation: Operation, shape: Sequence[int]) -> int:
    """Elements that a slice reads together: whole trailing dimensions, and part of the next one."""
    run: int = 1
    bounds = zip(*(operation.attributes[name] for name in ("start_indices", "limit_indices", "strides")))
    for (start, limit, stride), extent in reversed(list(zip(bounds, shape))):
        if stride != 1:
            break
        run *= int(limit - start)
        if limit - start != extent:
            break
    return run
