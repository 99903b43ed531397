"""The record behind every view: what it is a view of, and what is known of it so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.nki.buffer import Buffer
from neuron_tools.nki.dtypes import DType
from neuron_tools.nki.layout import Shape

Limits = tuple[tuple[int, int, tuple[int, ...]], ...]
"""Per indexed dimension: (extent, offset, coefficient per axis of the view), to be checked under a mask."""


class View:
    """A shape, strides and an offset in elements over a buffer; the trace and tensors share this record.

    Attributes:
        storage: The buffer; None while it is a result that nothing has stored yet.
        elements: Its values, which it owns together with other views of a tile on chip.
        strides: Elements from one position of each dimension to the next.
        offset: Elements from the start of the storage.
        dtype: Element type.
        region: Its row of the trace's region table; -1 until it is used.
        form: Its `ViewForm`; None until it is used. Of a result that is held back: the memory it will lie in.
        emit: Computes a result that is held back into the view it is given.
        gather: Position of each element in the storage, for indirect accesses; -1 outside.
        limits: What is still to be checked of its bounds.
    """

    __slots__ = (
        "_array", "_shape", "dtype", "elements", "emit", "form", "gather", "limits", "offset", "region",
        "storage", "strides",
    )  # fmt: skip

    def __init__(
        self, storage: Buffer | None, dtype: DType, shape: Shape, strides: Shape, offset: int = 0
    ) -> None:
        self.storage = storage
        self.elements = storage.elements() if storage is not None and storage.is_owned_by_views else None
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

    @property
    def shape(self) -> Shape:
        """Size of each dimension."""
        return self._shape

    def stand_for(self, target: View) -> None:
        """Become a view of what `target` is a view of; the elements that were seen before are forgotten."""
        self.form = None
        self.storage, self.offset, self.dtype = target.storage, target.offset, target.dtype
        self.elements = target.elements
        self._shape, self.strides, self.gather = target._shape, target.strides, target.gather
        self.limits = target.limits
