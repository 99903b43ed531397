"""Results of language functions: held back until stored or used, and restricted by masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Array
from neuron_tools.nki.dtypes import DType
from neuron_tools.nki.index import Mask, Rectangle
from neuron_tools.nki.indexing import only_where, scattered_where
from neuron_tools.nki.isa.enums import oob_mode as bounds
from neuron_tools.nki.isa.issue import ready
from neuron_tools.nki.layout import row_major
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.tracer import Tracer


class Emission:
    """What a held-back result does once it is known where it goes, at the line that asked for it.

    Attributes:
        accumulates: Whether `target += result` can add in place (matmuls in PSUM).
        is_condition: Whether it compares tiles.
    """

    __slots__ = ("accumulates", "function", "is_condition", "site", "trace")

    def __init__(self, trace: Tracer, function: Callable[..., object], accumulates: bool = False) -> None:
        self.trace = trace
        self.function = function
        self.accumulates = accumulates
        self.is_condition = False
        self.site = trace.site() if trace.recording else -1

    def __call__(self, target: NkiTensor, **options: Any) -> None:
        """Emit into `target`."""
        trace = self.trace
        before = trace.site_override
        if self.site >= 0:
            trace.site_override = self.site
        try:
            self.function(target, **options)
        finally:
            trace.site_override = before


def leave(target: NkiTensor, **_options: Any) -> None:
    """Emit no instruction. Kernels may read on what a mask has left out, so it counts as written."""
    if target.limits is None and target.gather is None:
        if target.region < 0:
            target.resolve()
        ready().mark_written(target)


def result(
    shape: tuple[int, ...],
    dtype: DType,
    emit: Callable[..., object],
    region: MemoryRegion = MemoryRegion.sbuf,
    accumulates: bool = False,
    left: Restriction | None = None,
) -> NkiTensor:
    """A tile that `emit(target)` will fill: in place of an assignment's target, or in a tile of its own.

    Where the mask of the call has left nothing, nothing is emitted.
    """
    trace = ready()
    if trace.older_dialect and len(shape) < 2:
        shape = (*shape, *(1,) * (2 - len(shape)))
    tensor = NkiTensor(None, dtype, shape, row_major(shape))
    tensor.form = region
    tensor.emit = Emission(trace, leave if left is not None and left.empty else emit, accumulates)
    return trace.defer(tensor)


def _elements(mask: Any, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """A mask that is an array, or a tile whose values decide."""
    if not isinstance(mask, NkiTensor):
        return np.asarray(mask, bool)
    ready().needs_values()
    return np.broadcast_to(mask.array.astype(bool), shape)


class Restriction:
    """The part of a tile that a mask leaves.

    Attributes:
        rectangle: (start, stop) per dimension; None: everything.
        rest: Boolean array over the rectangle where the mask is not a rectangle.
        empty: Whether nothing is left.
    """

    __slots__ = ("empty", "rectangle", "rest", "shape")

    def __init__(self, shape: Sequence[int], mask: Any) -> None:
        self.shape = tuple(shape)
        self.rectangle: Rectangle | None = None
        self.rest: Array | None = None
        self.empty = False
        if mask is None or mask is True or (isinstance(mask, np.bool_) and bool(mask)):
            return
        if isinstance(mask, (bool, np.bool_)):
            self.empty = True
            return
        given = mask if isinstance(mask, Mask) else Mask((), _elements(mask, self.shape))
        rectangle, self.rest = given.split(self.shape)
        self.empty = any(start >= stop for start, stop in rectangle)
        if any(limits != (0, extent) for limits, extent in zip(rectangle, self.shape)):
            self.rectangle = rectangle

    def mode(self, asked: bounds = bounds.error) -> bounds:
        """What a copy does with positions outside: as asked; a mask that is no rectangle leaves them out."""
        return asked if self.rest is None else bounds.skip

    def part(self, operand: Any) -> Any:
        """The operand restricted: tiles of the full shape or with one element per partition."""
        if not isinstance(operand, NkiTensor):
            return operand
        part = operand if self.rectangle is None else self._inside(operand, self.rectangle)
        if self.rest is None:
            return part
        if part.gather is not None and part.shape == self.rest.shape:
            return scattered_where(part, self.rest)
        return part if part.limits is None else only_where(part, self.rest)

    def _inside(self, operand: NkiTensor, limited: Rectangle) -> NkiTensor:
        limits = []
        rank = len(self.shape)
        shape = operand.shape
        if len(shape) > rank:
            return operand
        rectangle = limited[: len(shape)] if len(shape) < rank else limited
        for extent, (start, stop), whole in zip(shape, rectangle, self.shape):
            limits.append((start, stop) if extent == whole else (0, extent))
        return operand.within(tuple(limits))

    def reduced(self, target: NkiTensor, axes: Sequence[int], keepdims: bool) -> NkiTensor:
        """The part of the target of a reduction over `axes` of the restricted shape."""
        if self.rectangle is None:
            return target
        limits = [
            (0, 1) if axis in axes else limit
            for axis, limit in enumerate(self.rectangle)
            if keepdims or axis not in axes
        ]
        limits += [(0, 1)] * (target.ndim - len(limits))
        return target.within(tuple(limits)) if len(limits) == target.ndim else target

    def run(self, target: NkiTensor, emit: Callable[[NkiTensor], object]) -> None:
        """Emit into the part of `target`; outside the mask, elements keep their values."""
        if self.empty:
            leave(target)
            return
        part = self.part(target)
        if self.rest is None or part.gather is not None:
            emit(part)
            return
        trace = ready()
        held = part.array.copy() if trace.values else None
        emit(part)
        if held is not None:
            part.array[...] = np.where(self.rest, part.array, held)
