"""Tensors as kernels see them: views over buffers. Taking a view costs no copy and emits nothing.

A view is a shape, strides and an offset in elements of its own type over a buffer's flat storage, exactly as
the hardware's access patterns are. The first use of a view in an instruction resolves it: its box in the
buffer becomes a row of the trace's region table, and its form (memory, type, shape, layout) one of a few
interned `ViewForm`s, by which instructions of the same kind are recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.buffer import Box, Buffer
from neuron_tools.nki.dtypes import DType, as_dtype
from neuron_tools.nki.errors import NkiValidationError, OutOfBoundsError
from neuron_tools.nki.index import Index, Rectangle, as_index, pad
from neuron_tools.nki.layout import merge_strides, reshape_strides, row_major, tile_layout
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.registers import VirtualRegister, register_value
from neuron_tools.simulator.program import Memory

Shape = tuple[int, ...]
Limits = tuple[tuple[int, int, tuple[int, ...]], ...]
"""Per indexed dimension: (extent, offset, coefficient per axis of the view), to be checked under a mask."""


class ViewForm:
    """What the views of one memory, type, shape and layout have in common.

    Attributes:
        region, memory, dtype, shape, strides: As the view's.
        partitions: Size of the partition axis.
        elements: Elements per partition.
        contiguous: Whether the innermost elements of a partition follow one another.
        run_bytes: Bytes that lie together in memory, at least one element.
        line: Partition where it starts (on chip).
    """

    __slots__ = (
        "contiguous", "dtype", "elements", "line", "memory", "partitions", "region", "run_bytes", "shape",
        "size", "strides",
    )  # fmt: skip

    def __init__(
        self, region: MemoryRegion, dtype: DType, shape: Shape, strides: Shape, line: int, pitch: int
    ) -> None:
        self.region = region
        self.memory: Memory = region.memory
        self.dtype = dtype
        self.shape = shape
        self.strides = strides
        self.line = line
        self.partitions = shape[0] if shape else 1
        elements = 1
        for extent in shape[1:]:
            elements *= extent
        self.elements = elements
        self.size = elements * self.partitions
        run = 1
        for extent, stride in zip(reversed(shape), reversed(strides)):
            if extent != 1 and stride != run:
                break
            if region.is_on_chip and stride == pitch and extent != 1:
                break
            run *= extent
        self.run_bytes = run * dtype.itemsize
        self.contiguous = elements == 1 or run > 1


class NkiTensor:
    """A tensor or a view of one.

    Attributes:
        shape: Size of each dimension. On chip the first is the partition dimension.
        strides: Elements from one position of each dimension to the next.
        offset: Elements from the start of the storage.
        dtype: Element type.
    """

    __slots__ = (
        "_array", "_shape", "dtype", "emit", "form", "gather", "limits", "offset", "region",
        "storage", "strides",
    )  # fmt: skip

    arithmetic: ClassVar[dict[str, Callable[..., Any]]] = {}
    """Python's operators by name, filled in by the language: `add(x, y)` and so on."""

    def __init__(
        self, storage: Buffer | None, dtype: DType, shape: Shape, strides: Shape, offset: int = 0
    ) -> None:
        self.storage = storage
        self.dtype = dtype
        self._shape = shape
        self.strides = strides
        self.offset = offset
        self.region = -1
        self.form: Any = None
        self.emit: Callable[..., None] | None = None
        self.gather: npt.NDArray[np.int64] | None = None
        self.limits: Limits | None = None
        self._array: npt.NDArray[Any] | None = None

    # What it is

    @property
    def shape(self) -> Shape:
        """Size of each dimension."""
        return self._shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        size = 1
        for extent in self._shape:
            size *= extent
        return size

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def buffer(self) -> MemoryRegion:
        """The memory it lies in."""
        return self.backing.region

    @property
    def name(self) -> str:
        """Name of the tensor it is a view of."""
        return self.backing.name

    @property
    def address(self) -> tuple[int, int] | None:
        """(partition, byte) where the kernel put it; None where that was left open."""
        backing = self.backing
        return None if backing.address is None else (backing.partition, backing.address)

    @property
    def backing(self) -> Buffer:
        """The buffer, made now if this is a result that nothing has stored yet."""
        if self.storage is None:
            tracing.active().flush(self)
        assert self.storage is not None
        return self.storage

    @property
    def array(self) -> npt.NDArray[Any]:
        """Its elements: a NumPy view of the storage (a copy for indirect accesses)."""
        if self._array is None:
            if self.gather is not None:
                return self.flat[self.gather]
            item = self.dtype.itemsize
            self._array = np.ndarray(
                self._shape,
                self.dtype.dtype,
                self.backing.data,
                self.offset * item,
                [stride * item for stride in self.strides],
            )
        return self._array

    @property
    def flat(self) -> npt.NDArray[Any]:
        """The whole storage as one row of this view's type."""
        data = self.backing.data
        return data if data.dtype == self.dtype.dtype else data.view(self.dtype.dtype)

    def is_contiguous(self) -> bool:
        """Whether its elements follow one another in storage; on chip, in each partition."""
        first = 1 if self.buffer.is_on_chip else 0
        pairs = zip(self._shape[first:], self.strides[first:], row_major(self._shape)[first:])
        return self.gather is None and all(extent == 1 or have == want for extent, have, want in pairs)

    def is_indirect(self) -> bool:
        """Whether its elements are chosen by indices that are known only when the kernel runs."""
        return self.gather is not None

    def get_pattern(self) -> list[list[int]]:
        """Access pattern: [stride, count] of each dimension, in elements."""
        return [[stride, extent] for stride, extent in zip(self.strides, self._shape)]

    def __repr__(self) -> str:
        return f"NkiTensor(shape={self._shape}, dtype={self.dtype})"

    def __len__(self) -> int:
        return self._shape[0]

    # Use in instructions

    def resolve(self) -> None:
        """Give the view its row of the region table and its form."""
        trace = tracing._ACTIVE
        if trace is None:
            trace = tracing.active()
        storage = self.storage
        if storage is None:
            trace.flush(self)
            storage = self.storage
            assert storage is not None
        if self.limits is not None:
            self._check_limits()
        alike = self.strides is storage.strides and self._shape is storage.shape
        if alike and self.dtype is storage.dtype and self.offset == 0 and self.gather is None:
            self.region, self.form = storage.whole or self._resolve_whole(trace, storage)
            return
        place = (self.offset, self._shape, self.strides, self.dtype)
        if self.gather is None:
            known = storage.views.get(place)
            if known is not None:
                self.region, self.form = known
                return
        first, last, low, high = self.box()
        self.region = trace.add_region(storage.number, first, last, low, high)
        line = (first % storage.partitions + storage.partition) if storage.on_chip else -1
        self.form = self._find_form(trace, storage, line)
        if self.gather is None:
            storage.views[place] = self.region, self.form

    def _resolve_whole(self, trace: tracing.Tracer, storage: Buffer) -> tuple[int, ViewForm]:
        region = trace.add_region(storage.number, 0, storage.lines, 0, storage.pitch_bytes)
        form = self._find_form(trace, storage, storage.partition if storage.on_chip else -1)
        storage.whole = region, form
        return storage.whole

    def _find_form(self, trace: tracing.Tracer, storage: Buffer, line: int) -> ViewForm:
        key = (storage.region, self.dtype, self._shape, self.strides, line)
        form: ViewForm | None = trace.forms.get(key)
        if form is None:
            form = trace.forms[key] = ViewForm(
                storage.region, self.dtype, self._shape, self.strides, line, storage.pitch
            )
        return form

    def box(self) -> Box:
        """Lines and bytes that the view may touch: (first line, last line, low, high), ends exclusive."""
        storage = self.storage
        assert storage is not None
        whole = self._shape == storage.shape and self.dtype is storage.dtype and self.offset == 0
        if whole and self.gather is None and self.strides == row_major(self._shape):
            return 0, storage.lines, 0, storage.pitch_bytes
        pitch, item = storage.pitch_bytes, self.dtype.itemsize
        if self.gather is not None:
            if self.gather.size == 0:
                return 0, 0, 0, 0
            start, stop = max(int(self.gather.min()), 0) * item, (int(self.gather.max()) + 1) * item
            return start // pitch, -(-stop // pitch), 0, pitch
        start = self.offset
        for extent, stride in zip(self._shape, self.strides):
            if stride < 0:
                start += (extent - 1) * stride
        first, low = divmod(start * item, pitch)
        last, high = first + 1, low + item
        for extent, stride in zip(self._shape, self.strides):
            reach = (extent - 1) * abs(stride) * item
            if not reach:
                continue
            if (stride * item) % pitch == 0:
                last += reach // pitch
            else:
                high += reach
        if high > pitch:
            return first, last + (high - 1) // pitch, 0, pitch
        return first, last, low, high

    def _check_limits(self) -> None:
        assert self.limits is not None
        for extent, offset, coefficients in self.limits:
            low = high = offset
            for count, step in zip(self._shape, coefficients):
                reach = step * (count - 1)
                low, high = (low + reach, high) if reach < 0 else (low, high + reach)
            if low < 0 or high >= extent:
                raise OutOfBoundsError(
                    f"an index reaches {low} to {high}, but the dimension of tensor {self.name!r} has "
                    f"{extent} elements; mask the access or shrink it",
                    tracing.where(),
                )
        self.limits = None

    def within(self, rectangle: Rectangle) -> NkiTensor:
        """The part of the view between (start, stop) per dimension; bounds are not checked."""
        offset = self.offset
        for (start, _), stride in zip(rectangle, self.strides):
            offset += start * stride
        shape = tuple(stop - start for start, stop in rectangle)
        part = NkiTensor(self.backing, self.dtype, shape, self.strides, offset)
        if self.gather is not None:
            part.gather = self.gather[tuple(slice(*limits) for limits in rectangle)]
        if self.limits is not None:
            starts = [start for start, _ in rectangle]
            part.limits = tuple(
                (extent, base + sum(step * start for step, start in zip(steps, starts)), steps)
                for extent, base, steps in self.limits
            )
        return part

    # Views by index

    def __getitem__(self, key: Any) -> NkiTensor:
        storage = self.storage
        if storage is None:
            storage = self.backing
        if type(key) is not tuple:
            key = (key,)
        shape, old_strides = self._shape, self.strides
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
                    if stop > extent or start > stop or start < 0:
                        return self._indexed(key)
                    offset += start * stride
                    if step is None or step == 1:
                        extents.append(stop - start)
                        strides.append(stride)
                    elif step > 0:
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
        from neuron_tools.nki.indexing import index_view

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
        """The dimensions in another order; on chip the partition dimension stays first."""
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
        """Dimension `dim`, of size 1, repeated `size` times."""
        if self._shape[dim] != 1:
            raise NkiValidationError(
                f"broadcast repeats dimensions of size 1, but dimension {dim} has {self._shape[dim]}",
                tracing.where(),
            )
        shape, strides = list(self._shape), list(self.strides)
        shape[dim], strides[dim] = size, 0
        return self._with(tuple(shape), tuple(strides))

    def broadcast_to(self, *extents_given: Any, shape: Any = None) -> NkiTensor:
        """The view repeated along its dimensions of size 1, as NumPy's broadcast_to."""
        wanted = tuple(_sequence(extents_given) if shape is None else shape)
        missing = len(wanted) - self.ndim
        if missing > 0 and self.backing.tile_rank and self._shape == wanted[: self.ndim] != wanted[missing:]:
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
        """Without dimension `dim`, which must have size 1."""
        if self._shape[dim] != 1:
            raise NkiValidationError(
                f"dimension {dim} has {self._shape[dim]} elements and cannot be squeezed", tracing.where()
            )
        dim %= self.ndim
        return self._with(
            self._shape[:dim] + self._shape[dim + 1 :], self.strides[:dim] + self.strides[dim + 1 :]
        )

    def reshape_dim(self, dim: int, shape: Sequence[int]) -> NkiTensor:
        """Dimension `dim` split into several; one extent may be -1."""
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
        """Dimensions `start_dim` to `end_dim` (inclusive) merged into one."""
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
        from neuron_tools.nki.indexing import select_view

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
        from neuron_tools.nki.indexing import indirect_view

        return indirect_view(self, index, num_elem)

    def rearrange(
        self, src_pattern: Any, dst_pattern: Any = None, fixed_sizes: Any = None, **sizes: int
    ) -> NkiTensor:
        """Dimensions split, reordered and merged, by an einops pattern or by two tuples of names."""
        from neuron_tools.nki.rearrange import rearranged

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
        from neuron_tools.nki.indexing import pattern_view

        return pattern_view(self, pattern, offset or 0, scalar_offset, vector_offset, indirect_dim, dtype)

    def view(self, dtype: Any) -> NkiTensor:
        """The same bytes as another type; the innermost dimension grows or shrinks with the item size."""
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
        copied: NkiTensor = NkiTensor.arithmetic["copy"](self, dtype=dtype)
        return copied

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

    # Python's operators

    def _binary(self, name: str, other: Any, swapped: bool = False) -> NkiTensor:
        function = NkiTensor.arithmetic[name]
        result: NkiTensor = function(other, self) if swapped else function(self, other)
        return result

    def __add__(self, other: Any) -> NkiTensor:
        return self._binary("add", other)

    def __radd__(self, other: Any) -> NkiTensor:
        return self._binary("add", other, True)

    def __sub__(self, other: Any) -> NkiTensor:
        return self._binary("subtract", other)

    def __rsub__(self, other: Any) -> NkiTensor:
        return self._binary("subtract", other, True)

    def __mul__(self, other: Any) -> NkiTensor:
        return self._binary("multiply", other)

    def __rmul__(self, other: Any) -> NkiTensor:
        return self._binary("multiply", other, True)

    def __truediv__(self, other: Any) -> NkiTensor:
        return self._binary("divide", other)

    def __rtruediv__(self, other: Any) -> NkiTensor:
        return self._binary("divide", other, True)

    def __pow__(self, other: Any) -> NkiTensor:
        return self._binary("power", other)

    def __and__(self, other: Any) -> NkiTensor:
        return self._binary("bitwise_and", other)

    def __or__(self, other: Any) -> NkiTensor:
        return self._binary("bitwise_or", other)

    def __xor__(self, other: Any) -> NkiTensor:
        return self._binary("bitwise_xor", other)

    def __lshift__(self, other: Any) -> NkiTensor:
        return self._binary("left_shift", other)

    def __rshift__(self, other: Any) -> NkiTensor:
        return self._binary("right_shift", other)

    def __lt__(self, other: Any) -> NkiTensor:
        return self._binary("less", other)

    def __le__(self, other: Any) -> NkiTensor:
        return self._binary("less_equal", other)

    def __gt__(self, other: Any) -> NkiTensor:
        return self._binary("greater", other)

    def __ge__(self, other: Any) -> NkiTensor:
        return self._binary("greater_equal", other)

    def __neg__(self) -> NkiTensor:
        result: NkiTensor = NkiTensor.arithmetic["negative"](self)
        return result

    def __invert__(self) -> NkiTensor:
        result: NkiTensor = NkiTensor.arithmetic["invert"](self)
        return result

    def __abs__(self) -> NkiTensor:
        result: NkiTensor = NkiTensor.arithmetic["abs"](self)
        return result

    def _in_place(self, name: str, other: Any) -> NkiTensor:
        tracing.active().combine(self, name, other)
        return self

    def __iadd__(self, other: Any) -> NkiTensor:
        return self._in_place("add", other)

    def __isub__(self, other: Any) -> NkiTensor:
        return self._in_place("subtract", other)

    def __imul__(self, other: Any) -> NkiTensor:
        return self._in_place("multiply", other)

    def __itruediv__(self, other: Any) -> NkiTensor:
        return self._in_place("divide", other)


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


__all__ = ["Index", "NkiTensor", "ViewForm", "VirtualRegister", "as_index", "fill_extents", "pad"]
