"""Views: how an operand is read without being copied.

A chain of reshapes, broadcasts, slices and transposes in front of an operand costs nothing on the chip
when an access pattern can say the same. A `View` names the value at the end of the chain (its root) and
what of it is read, as blocks of the reader's flattened index space: real (different elements) or
repeated (stride 0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neuron_tools.compiler.hlo import Module, Operation

LAZY_OPCODES = frozenset({"constant", "iota", "broadcast_in_dim", "reshape", "slice", "transpose"})
"""Operations that need no instructions of their own where their users can read through them."""


@dataclass(frozen=True, slots=True)
class Block:
    """`extent` consecutive positions of the flattened index space: real data or repeated."""

    extent: int
    real: bool


@dataclass(frozen=True, slots=True)
class View:
    """An operand as its reader sees it.

    Attributes:
        root: The value read; -1 for a constant or an iota, which needs no memory.
        blocks: Real and repeated blocks of the reader's index space, outermost first, adjacent ones merged.
        run_elements: Elements of the root that lie together in memory (descriptor size of a load).
        generator: The constant or iota operation where root is -1.
        path: The lazy operations between the operand and its root, outermost first.
    """

    root: int
    blocks: tuple[Block, ...]
    run_elements: int
    generator: Operation | None = None
    path: tuple[Operation, ...] = ()

    @property
    def is_plain(self) -> bool:
        """The whole root, in its order in memory."""
        return self.root >= 0 and all(item.opcode == "reshape" for item in self.path)

    @property
    def is_scalar(self) -> bool:
        """One element serves every position."""
        return not any(block.real and block.extent > 1 for block in self.blocks)

    @property
    def real_elements(self) -> int:
        """Different elements read."""
        count = 1
        for block in self.blocks:
            if block.real:
                count *= block.extent
        return count


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


class Views:
    """Finds the view of any value of a module; answers are remembered."""

    def __init__(self, module: Module, made_by: Mapping[int, Operation]) -> None:
        self._module = module
        self._made_by = made_by
        self._known: dict[int, View] = {}

    def of(self, value: int) -> View:
        """The view through which a reader of `value` reads."""
        view = self._known.get(value)
        if view is None:
            view = self._known[value] = self._find(value)
        return view

    def _shape(self, value: int) -> tuple[int, ...]:
        return self._module.values[value].type.shape

    def _find(self, value: int) -> View:
        count = self._module.values[value].type.element_count
        operation = self._made_by.get(value)
        if operation is None or operation.opcode not in LAZY_OPCODES:
            return self._whole(value, count)
        return getattr(self, f"_{operation.opcode}")(operation, count)  # type: ignore[no-any-return]

    def _whole(self, value: int, count: int) -> View:
        return View(value, merged_blocks([(count, True)]), count)

    def _constant(self, operation: Operation, count: int) -> View:
        is_splat = not isinstance(operation.attributes.get("value"), tuple) and (
            operation.attributes.get("value") is not None or count == 1
        )
        if not is_splat:
            return self._whole(operation.results[0], count)
        return View(-1, merged_blocks([(count, False)]), count, operation, (operation,))

    def _iota(self, operation: Operation, count: int) -> View:
        axis = int(operation.attributes.get("iota_dimension", 0))
        shape = self._shape(operation.results[0])
        blocks = merged_blocks([(extent, index == axis) for index, extent in enumerate(shape)])
        return View(-1, blocks, count, operation, (operation,))

    def _reshape(self, operation: Operation, count: int) -> View:
        inner = self.of(operation.operands[0])
        return View(inner.root, inner.blocks, inner.run_elements, inner.generator, (operation, *inner.path))

    def _broadcast_in_dim(self, operation: Operation, count: int) -> View:
        source = operation.operands[0]
        inner = self.of(source)
        dims = tuple(operation.attributes.get("broadcast_dimensions", ()))
        shape, narrow = self._shape(operation.results[0]), self._shape(source)
        if list(dims) != sorted(dims) or any(not block.real for block in inner.blocks):
            if inner.generator is not None and inner.is_scalar:
                return View(-1, merged_blocks([(count, False)]), 1, inner.generator, (operation, *inner.path))
            inner = self._whole(source, self._module.values[source].type.element_count)
        real = {dim for dim, extent in zip(dims, narrow) if extent > 1}
        blocks = merged_blocks([(extent, index in real) for index, extent in enumerate(shape)])
        return View(inner.root, blocks, inner.run_elements, inner.generator, (operation, *inner.path))

    def _slice(self, operation: Operation, count: int) -> View:
        inner = self.of(operation.operands[0])
        if inner.root < 0 and inner.is_scalar:
            return View(-1, merged_blocks([(count, False)]), 1, inner.generator, (operation, *inner.path))
        if not inner.is_plain:
            return self._whole(operation.results[0], count)
        run = slice_run(operation, self._shape(operation.operands[0]))
        return View(inner.root, merged_blocks([(count, True)]), run, None, (operation, *inner.path))

    def _transpose(self, operation: Operation, count: int) -> View:
        inner = self.of(operation.operands[0])
        permutation = tuple(operation.attributes["permutation"])
        if inner.root < 0 and inner.is_scalar:
            return View(-1, inner.blocks, 1, inner.generator, (operation, *inner.path))
        run = _transpose_run(permutation, self._shape(operation.operands[0]))
        if run == 1 or any(not block.real for block in inner.blocks):
            return self._whole(operation.results[0], count)
        run = min(run, inner.run_elements)
        return View(inner.root, merged_blocks([(count, True)]), run, None, (operation, *inner.path))


def slice_run(operation: Operation, shape: Sequence[int]) -> int:
    """Elements that a slice reads together: whole trailing dimensions, and part of the next one."""
    run = 1
    bounds = zip(*(operation.attributes[name] for name in ("start_indices", "limit_indices", "strides")))
    for (start, limit, stride), extent in reversed(list(zip(bounds, shape))):
        if stride != 1:
            return run
        run *= limit - start
        if limit - start != extent:
            return run
    return run


def _transpose_run(permutation: Sequence[int], shape: Sequence[int]) -> int:
    """Elements that stay together: the trailing dimensions that keep their place (unit ones aside)."""
    kept = [axis for axis in permutation if shape[axis] > 1]
    order = sorted(kept)
    run = 1
    for axis, expected in zip(reversed(kept), reversed(order)):
        if axis != expected:
            break
        run *= shape[axis]
    return run
