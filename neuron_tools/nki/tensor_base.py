"""What a view is: shape, strides and an offset over a buffer, and what it becomes when it is first used."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.buffer import Box, Buffer
from neuron_tools.nki.dtypes import DType
from neuron_tools.nki.errors import NkiValidationError, OutOfBoundsError
from neuron_tools.nki.index import Rectangle
from neuron_tools.nki.layout import Shape, row_major
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.tile_arithmetic import TileArithmetic
from neuron_tools.nki.view_form import ViewForm

Own = TypeVar("Own", bound="TensorBase")


class TensorBase(TileArithmetic):
    """A tensor or a view of one.

    Attributes:
        shape: Size of each dimension. On chip the first is the partition dimension.
        strides: Elements from one position of each dimension to the next.
        offset: Elements from the start of the storage.
        dtype: Element type.
    """

    __slots__ = ()

    # What it is

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
    def data(self: Own) -> Own:
        """Itself: what a grid (`nl.tiles`) gives as the operand of an instruction."""
        return self

    @property
    def base_tensor(self: Own) -> Own:
        """The whole tensor that it is a view of; itself where it shows all of that in order, as any type."""
        backing = self.backing
        whole = self.size * self.itemsize == backing.lines * backing.pitch_bytes
        if whole and self.offset == 0 and self.is_contiguous():
            return self
        return self.placed(backing.shape, backing.strides, 0, backing.dtype)

    @property
    def array(self) -> npt.NDArray[Any]:
        """Its elements: a NumPy view of the storage (a copy for indirect accesses).

        Raises:
            NkiValidationError: The view reaches beyond its memory.
        """
        if self._array is None:
            if self.gather is not None:
                return self.flat.take(self.reached())
            data = self._stored()
            element = data.dtype
            item = element.itemsize
            strides = [stride * item for stride in self.strides]
            try:
                seen: npt.NDArray[Any] = np.ndarray(self._shape, element, data, self.offset * item, strides)
            except ValueError:  # NumPy's, of a view outside the data
                raise self._beyond() from None
            if self.backing.borrowed:  # the storage will be another once it is written
                return seen
            self._array = seen
        return self._array

    def reached(self) -> npt.NDArray[np.int64]:
        """Positions of an indirect access; those outside, which only a mask leaves out, as 0.

        Raises:
            OutOfBoundsError: One lies outside, and nothing leaves it out.
        """
        assert self.gather is not None
        if not self.gather.size or self.gather.min() >= 0:
            return self.gather
        if not tracing.active().older_dialect:
            raise OutOfBoundsError(
                f"an index of the indirect access to tensor {self.name!r} of shape {self.backing.shape} is "
                "out of bounds, and only DMAs can leave elements out; check the index, or copy with "
                "nisa.dma_copy(..., oob_mode=nisa.oob_mode.skip)",
                tracing.where(),
            )
        return np.maximum(self.gather, 0)

    @property
    def flat(self) -> npt.NDArray[Any]:
        """The whole storage as one row of this view's type."""
        return self._stored()

    def _stored(self) -> npt.NDArray[Any]:
        """The storage as this view's type; float32 where narrow floats are not rounded.

        Another type's view of such floats is a copy of their rounded bits, which cannot be written.
        """
        data, element, backing = self.backing.data, self.dtype.dtype, self.backing
        if data.dtype == element or (self.dtype is backing.dtype and data.dtype == backing.element):
            return data
        if backing.element != backing.dtype.dtype:
            data = data.astype(backing.dtype.dtype)
            data.flags.writeable = False
        return data.view(element)

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

    def known_integers(self) -> npt.NDArray[np.int64]:
        """Its elements where they decide what the kernel does; a run that computes no values stops here.

        Raises:
            NkiValidationError: They are floats.
        """
        self.require_integers()
        tracing.active().needs_values()
        if self.region < 0:
            self.resolve()
        return self.array.astype(np.int64)

    def require_integers(self) -> None:
        """Refuse floats where elements are indices.

        Raises:
            NkiValidationError: The elements are floats.
        """
        if self.dtype.is_float:
            raise NkiValidationError(
                f"a tile of {self.dtype} cannot be an index or a bound; convert it to nl.int32 first "
                "(nisa.tensor_copy)",
                tracing.where(),
            )

    def placed(self: Own, shape: Shape, strides: Shape, offset: int, dtype: DType | None = None) -> Own:
        """Another view of the same buffer; bounds are not checked."""
        return type(self)(self.backing, dtype or self.dtype, shape, strides, offset)

    # Use in instructions

    def resolve(self) -> None:
        """Give the view its row of the region table and its form.

        Raises:
            NkiValidationError: The view reaches beyond its memory.
        """
        trace = tracing.OF_THREAD.trace
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
        if (first < 0 or last > storage.lines) and self.size:
            raise self._beyond()
        self.region = trace.add_region(storage.number, first, last, low, high)
        line = (first % storage.partitions + storage.partition) if storage.on_chip else -1
        self.form = self._find_form(trace, storage, line)
        if self.gather is None:
            storage.views[place] = self.region, self.form

    def _beyond(self) -> OutOfBoundsError:
        """The error for a view that reaches outside its tensor."""
        reach = sum((extent - 1) * stride for extent, stride in zip(self._shape, self.strides))
        storage = self.backing
        return OutOfBoundsError(
            f"the access pattern {self.get_pattern()} from element {self.offset} reaches element "
            f"{self.offset + reach} of tensor {self.name!r}, which has "
            f"{storage.lines * storage.pitch_bytes // self.dtype.itemsize}; start it lower or shorten it",
            tracing.where(),
        )

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

    def within(self: Own, rectangle: Rectangle) -> Own:
        """The part of the view between (start, stop) per dimension; bounds are not checked."""
        offset = self.offset
        for (start, _), stride in zip(rectangle, self.strides):
            offset += start * stride
        shape = tuple(stop - start for start, stop in rectangle)
        part = type(self)(self.backing, self.dtype, shape, self.strides, offset)
        if self.gather is not None:
            part.gather = self.gather[tuple(slice(*limits) for limits in rectangle)]
        if self.limits is not None:
            starts = [start for start, _ in rectangle]
            part.limits = tuple(
                (extent, base + sum(step * start for step, start in zip(steps, starts)), steps)
                for extent, base, steps in self.limits
            )
        return part
