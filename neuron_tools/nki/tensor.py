"""Tensors as kernels see them: views over buffers. Taking a view costs no copy and emits nothing.

A view is a shape, strides and an offset in elements of its own type over a buffer's flat storage, exactly as
the hardware's access patterns are. The first use of a view in an instruction resolves it: its box in the
buffer becomes a row of the trace's region table, and its form (memory, type, shape, layout) one of a few
interned `ViewForm`s, by which instructions of the same kind are recognised.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.dtypes import as_dtype
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.indexing import index_view, indirect_view, pattern_view, select_view
from neuron_tools.nki.layout import Shape, merge_strides, reshape_strides, row_major, tile_layout
from neuron_tools.nki.missing import missing_attribute
from neuron_tools.nki.rearrange import rearranged
from neuron_tools.nki.registers import register_value
from neuron_tools.nki.tensor_base import TensorBase


class NkiTensor(TensorBase):
    """A tensor or a view of one: the base tells what it is; here are the views that can be taken of it."""

    __slots__ = ()

    if not TYPE_CHECKING:  # else every attribute would seem to be there

        def __getattr__(self, name: str) -> Any:
            """Refuse what a tensor does not have; only names that were not found come here."""
            raise missing_attribute(self, name)

    # Views by index

    def __getitem__(self, key: Any) -> NkiTensor:
        storage = self.storage
        if storage is None:
            storage = self.backing
        shape, old_strides = self._shape, self.strides
        if type(key) is not tuple:
            if key is Ellipsis and self.gather is None and len(shape) >= storage.tile_rank:
                return NkiTensor(storage, self.dtype, shape, old_strides, self.offset)
            key = (key,)
        line = storage.pitch_bytes // self.dtype.itemsize if storage.tile_rank else -1
        offset = self.offset
        extents: list[int] = []
        strides: list[int] = []
        axis = 0
        rank = len(shape)
        try:
            for item in key:
                kind = type(item)
                if kind is slice:
                    extent, stride = shape[axis], old_strides[axis]
                    start, stop, step = item.start, item.stop, item.step
                    if start is None:
                        start = 0
                    elif start < 0:
                        start += extent
                    if stop is None:
                        stop = extent
                    elif stop < 0:
                        stop += extent
                    if stop > extent or start > stop or start < 0 or type(start + stop) is not int:
                        return self._indexed(key)
                    offset += start * stride
                    if step is None or step == 1:
                        extents.append(stop - start)
                        strides.append(stride)
                    elif type(step) is int and step > 0:
                        extents.append((stop - start + step - 1) // step)
                        strides.append(stride * step)
                    else:
                        return self._indexed(key)
                    axis += 1
                elif kind is int:
                    extent = shape[axis]
                    if item < 0:
                        item += extent
                    if not 0 <= item < extent or old_strides[axis] == line:
                        return self._indexed(key)
                    offset += item * old_strides[axis]
                    axis += 1
                elif item is None:
                    extents.append(1)
                    strides.append(0)
                else:
                    return self._indexed(key)
        except (IndexError, TypeError):
            return self._indexed(key)
        if axis < rank:
            extents.extend(shape[axis:])
            strides.extend(old_strides[axis:])
        if self.gather is not None:
            return self._indexed(key)
        if len(extents) < storage.tile_rank:
            extents, strides = tile_layout(extents, strides)
        return NkiTensor(storage, self.dtype, tuple(extents), tuple(strides), offset)

    def _indexed(self, key: tuple[Any, ...]) -> NkiTensor:
        """Index by anything: ellipsis, expressions, registers, tensors of indices."""
        return index_view(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        target = self[key]
        if isinstance(value, NkiTensor):
            if value.emit is not None:
                tracing.active().settle(value, target)
                return
            same = value.storage is target.storage and value.offset == target.offset
            alike = value._shape == target._shape and value.strides == target.strides
            if same and alike and value.gather is target.gather:
                return
        NkiTensor.arithmetic["assign"](target, value)

    # Views by form

    def reshape(self, *extents_given: Any, shape: Any = None) -> NkiTensor:
        """The same elements in another shape, `reshape((a, b))` or `reshape(a, b)`; one extent may be -1.

        Raises:
            NkiValidationError: The sizes differ, or the elements do not lie so that no copy is needed.
        """
        wanted = _sequence(extents_given) if shape is None else shape
        extents = fill_extents(tuple(int(extent) for extent in wanted), self.size)
        if extents is None:
            raise NkiValidationError(f"cannot reshape {self._shape} to {tuple(wanted)}", tracing.where())
        strides = reshape_strides(self._shape, self.strides, extents)
        if strides is None:
            raise NkiValidationError(
                f"cannot reshape {self._shape} to {extents} without a copy: its elements do not lie in order",
                tracing.where(),
            )
        return self._with(extents, strides)

    def permute(self, *order_given: Any, dims: Any = None) -> NkiTensor:
        """The dimensions in another order; on chip the partition dimension stays first.

        Raises:
            NkiValidationError: A dimension is missing or named twice, or the partition dimension would move.
        """
        order = tuple(_sequence(order_given) if dims is None else dims)
        if sorted(order) != list(range(self.ndim)):
            raise NkiValidationError(f"permute{order} does not name each of {self.ndim} dimensions once",
                                     tracing.where())  # fmt: skip
        if self.buffer.is_on_chip and order and order[0] != 0 and self._shape[0] > 1:
            raise NkiValidationError(
                "permute would move the partition dimension, which only a transpose can", tracing.where()
            )
        view = self._with(tuple(self._shape[d] for d in order), tuple(self.strides[d] for d in order))
        if self.gather is not None:
            view.gather = self.gather.transpose(order)
        return view

    def broadcast(self, dim: int, size: int) -> NkiTensor:
        """Dimension `dim`, of size 1, repeated `size` times.

        Raises:
            NkiValidationError: The dimension has another size.
        """
        if self._shape[dim] != 1:
            raise NkiValidationError(
                f"broadcast repeats dimensions of size 1, but dimension {dim} has {self._shape[dim]}",
                tracing.where(),
            )
        shape, strides = list(self._shape), list(self.strides)
        shape[dim], strides[dim] = size, 0
        return self._with(tuple(shape), tuple(strides))

    def broadcast_to(self, *extents_given: Any, shape: Any = None) -> NkiTensor:
        """The view repeated along its dimensions of size 1, as NumPy's broadcast_to.

        Raises:
            NkiValidationError: A dimension of another size would have to be repeated.
        """
        wanted = tuple(_sequence(extents_given) if shape is None else shape)
        missing = len(wanted) - self.ndim
        older = self.backing.tile_rank and tracing.active().older_dialect
        if missing > 0 and older and self._shape == wanted[: self.ndim] != wanted[missing:]:
            # The older dialect repeats a tile along the free dimensions that it lacks.
            return self._with((*self._shape, *(1,) * missing), (*self.strides, *(0,) * missing)).broadcast_to(
                wanted
            )
        extents, strides = (1,) * missing + self._shape, (0,) * missing + self.strides
        steps = []
        for have, stride, want in zip(extents, strides, wanted):
            if have != want and have != 1:
                raise NkiValidationError(f"cannot broadcast {self._shape} to {wanted}", tracing.where())
            steps.append(stride if have == want else 0)
        return self._with(wanted, tuple(steps))

    def expand_dim(self, dim: int) -> NkiTensor:
        """A new dimension of size 1 at position `dim`."""
        dim = dim if dim >= 0 else dim + self.ndim + 1
        shape, strides = list(self._shape), list(self.strides)
        shape.insert(dim, 1)
        strides.insert(dim, 0)
        return self._with(tuple(shape), tuple(strides))

    def expand_dims(self, axis: int) -> NkiTensor:
        """Older spelling of `expand_dim`."""
        return self.expand_dim(axis)

    def squeeze_dim(self, dim: int) -> NkiTensor:
        """Without dimension `dim`, which must have size 1.

        Raises:
            NkiValidationError: It has another size.
        """
        if self._shape[dim] != 1:
            raise NkiValidationError(
                f"dimension {dim} has {self._shape[dim]} elements and cannot be squeezed", tracing.where()
            )
        dim %= self.ndim
        return self._with(
            self._shape[:dim] + self._shape[dim + 1 :], self.strides[:dim] + self.strides[dim + 1 :]
        )

    def reshape_dim(self, dim: int, shape: Sequence[int]) -> NkiTensor:
        """Dimension `dim` split into several; one extent may be -1.

        Raises:
            NkiValidationError: The dimension has another number of elements.
        """
        dim %= self.ndim
        parts = fill_extents(tuple(shape), self._shape[dim])
        if parts is None:
            raise NkiValidationError(
                f"dimension {dim} of size {self._shape[dim]} does not split into {tuple(shape)}",
                tracing.where(),
            )
        steps = tuple(step * self.strides[dim] for step in row_major(parts))
        return self._with(
            self._shape[:dim] + parts + self._shape[dim + 1 :],
            self.strides[:dim] + steps + self.strides[dim + 1 :],
        )

    def flatten_dims(self, start_dim: int, end_dim: int) -> NkiTensor:
        """Dimensions `start_dim` to `end_dim` (inclusive) merged into one.

        Raises:
            NkiValidationError: They do not lie together in memory.
        """
        stop = end_dim % self.ndim + 1
        merged = merge_strides(self._shape[start_dim:stop], self.strides[start_dim:stop])
        if merged is None:
            raise NkiValidationError(
                f"dimensions {start_dim} to {end_dim} do not lie together and cannot be merged",
                tracing.where(),
            )
        extent, stride = merged
        return self._with(
            (*self._shape[:start_dim], extent, *self._shape[stop:]),
            (*self.strides[:start_dim], stride, *self.strides[stop:]),
        )

    def slice(self, dim: int, start: int, end: int, step: int = 1) -> NkiTensor:
        """Positions `start` to `end` of one dimension."""
        key = (slice(None),) * (dim % self.ndim) + (slice(start, min(end, self._shape[dim]), step),)
        return self[key]

    def select(self, dim: int, index: Any) -> NkiTensor:
        """One position of a dimension, which disappears; `index` may be a register or a [1, 1] tensor."""
        return self[(slice(None),) * (dim % self.ndim) + (register_value(index),)]

    def vector_select(self, dim: int, vector_offset: NkiTensor) -> NkiTensor:
        """Positions of a dimension chosen by a tensor of indices, for a DMA that gathers or scatters."""
        return select_view(self, dim % self.ndim, vector_offset)

    def indirect(self, index: NkiTensor, num_elem: int | None = None) -> NkiTensor:
        """Tensor indirection: elements of the free dimension at positions that a tile holds.

        Args:
            index: (P, K) tile of positions; those of 16 neighbouring partitions serve all of them, taken
                along the partitions first.
            num_elem: How many positions to use; default 16 x K, all that 16 partitions hold.

        Returns:
            A (P, num_elem) view that an instruction gathers from or scatters to.
        """
        return indirect_view(self, index, num_elem)

    def rearrange(
        self, src_pattern: Any, dst_pattern: Any = None, fixed_sizes: Any = None, **sizes: int
    ) -> NkiTensor:
        """Dimensions split, reordered and merged, by an einops pattern or by two tuples of names."""
        return rearranged(self, src_pattern, dst_pattern, {**(fixed_sizes or {}), **sizes})

    def ap(
        self,
        pattern: Sequence[Sequence[int]],
        offset: int | None = None,
        scalar_offset: Any = None,
        vector_offset: NkiTensor | None = None,
        indirect_dim: int = 0,
        dtype: Any = None,
    ) -> NkiTensor:
        """A view by the hardware's own access pattern: [step, count] of each dimension, in elements."""
        return pattern_view(self, pattern, offset or 0, scalar_offset, vector_offset, indirect_dim, dtype)

    def view(self, dtype: Any) -> NkiTensor:
        """The same bytes as another type; the innermost dimension grows or shrinks with the item size.

        Raises:
            NkiValidationError: The elements do not lie together, or not on bounds of that type.
        """
        wanted, item = as_dtype(dtype), self.dtype.itemsize
        if wanted is self.dtype:
            return self
        if wanted.itemsize == item:
            view = NkiTensor(self.backing, wanted, self._shape, self.strides, self.offset)
            view.gather = self.gather
            return view
        last = self._shape[-1] * item
        if last % wanted.itemsize or (self.strides[-1] != 1 and self._shape[-1] != 1):
            raise NkiValidationError(
                f"{self._shape[-1]} elements of {self.dtype} cannot be seen as {wanted}", tracing.where()
            )
        scaled = [stride * item for stride in self.strides[:-1]]
        if any(stride % wanted.itemsize for stride in [*scaled, self.offset * item]):
            raise NkiValidationError(f"the elements do not lie on bounds of {wanted}", tracing.where())
        strides = (*tuple(stride // wanted.itemsize for stride in scaled), 1)
        shape = (*self._shape[:-1], last // wanted.itemsize)
        return NkiTensor(self.backing, wanted, shape, strides, self.offset * item // wanted.itemsize)

    reinterpret_cast = view

    def astype(self, dtype: Any) -> NkiTensor:
        """A copy as another type."""
        copied: NkiTensor = self.arithmetic["copy"](self, dtype=dtype)
        return copied

    def as_tile(self) -> NkiTensor:
        """Itself: what indexing selects of a tile is a tile (older dialect)."""
        return self

    def assert_shape(self, shape: Sequence[int]) -> NkiTensor:
        """Itself, if it has this shape.

        Raises:
            NkiValidationError: It has another.
        """
        if self._shape != tuple(shape):
            raise NkiValidationError(f"expected shape {tuple(shape)}, got {self._shape}", tracing.where())
        return self

    def _with(self, shape: Shape, strides: Shape) -> NkiTensor:
        view = NkiTensor(self.backing, self.dtype, shape, strides, self.offset)
        if self.gather is not None:
            view.gather = np.broadcast_to(self.gather, shape) if 0 in strides else self.gather.reshape(shape)
        return view


def _sequence(arguments: tuple[Any, ...]) -> Any:
    """`f((a, b))` and `f(a, b)` alike."""
    return arguments[0] if len(arguments) == 1 and not isinstance(arguments[0], int) else arguments


def fill_extents(shape: Shape, size: int) -> Shape | None:
    """`shape` with a -1 replaced so that it has `size` elements; None where that cannot be."""
    known = 1
    for extent in shape:
        known *= extent if extent != -1 else 1
    if -1 not in shape:
        return shape if known == size else None
    if shape.count(-1) > 1 or known == 0 or size % known:
        return None
    return tuple(size // known if extent == -1 else extent for extent in shape)
