"""Buffers: the storage behind tensors, with what of it has been written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np
import numpy.typing as npt

from neuron_tools.nki.conversion import as_element
from neuron_tools.nki.dtypes import DType
from neuron_tools.nki.layout import row_major
from neuron_tools.nki.memory_region import MemoryRegion

Box = tuple[int, int, int, int]
"""Lines `first .. last` and bytes `low .. high` of each line: (first, last, low, high), ends exclusive."""

_MAXIMUM_BOXES = 12


class Elements:
    """The values of a tile on chip. Views own them, not the buffer: with the last view of a tile they go.

    Attributes:
        data: One dimension; None until something is written or read.
    """

    __slots__ = ("__weakref__", "data")

    def __init__(self) -> None:
        self.data: npt.NDArray[Any] | None = None


class Buffer:
    """One declared tensor's memory.

    Memory is a table of lines: a line is one partition of SBUF or PSUM (blocks of the older dialect follow
    one another), or one row of an HBM tensor. Dependencies and bounds are boxes of lines and bytes.

    Attributes:
        number: Its place in the trace.
        region: Which memory.
        dtype: Element type it was declared with.
        element: NumPy type of its storage; float32 for narrow floats where they are not rounded.
        borrowed: Whether it still holds an argument's array that cannot take what is written: one that may
            not be written, or narrow floats where `element` is wider. Until something writes there, float32
            would hold the same numbers in two or four times the memory.
        is_owned_by_views: Whether its values go with its last view: those of a tile, where any are computed.
        peers: The same memory as the other cores of a launch know it.
        shape: Shape it was declared with.
        lines: How many lines.
        pitch: Elements of one line.
        pitch_bytes: Bytes of one line.
        on_chip: Whether it lies in SBUF or PSUM.
        strides: Strides of the whole of it, in elements.
        views: Region and form of the views of it that instructions have used.
        whole: Region and form of the whole of it, once used.
        blocks: Groups of lines that take the same partitions at other addresses (older dialect).
        line_bytes_all: Bytes of one partition over all blocks.
        site: Call site that declared it.
        name: Given by the kernel or made up.
        address: Byte in each partition where the kernel put it, or None.
        kind: "input", "output", "constant" or "scratch".
        tile_rank: Dimensions that its views keep at least: 2 on chip, else 0.
    """

    __slots__ = (
        "_boxes", "_data", "_elements", "_marks", "address", "block_addresses", "blocks", "borrowed",
        "complete", "dtype", "element", "factory", "is_owned_by_views", "kind", "lines", "name", "number",
        "on_chip", "partition", "peers", "pitch", "pitch_bytes", "region", "shape", "site", "strides",
        "tile_rank", "touched", "views", "whole",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        region: MemoryRegion,
        dtype: DType,
        shape: tuple[int, ...],
        *,
        lines: int,
        pitch: int,
        blocks: int = 1,
        strides: tuple[int, ...] | None = None,
        site: int = -1,
        name: str = "",
        kind: str = "scratch",
    ) -> None:
        self.number = number
        self.region = region
        self.on_chip = region.is_on_chip
        self.views: dict[Any, tuple[int, Any]] = {}
        self.dtype = dtype
        self.element = dtype.dtype
        self.borrowed = False
        self.is_owned_by_views = False
        self._elements: ref[Elements] | None = None
        self.peers: list[Buffer] = []
        self.shape = shape
        self.lines = lines
        self.pitch = pitch
        self.pitch_bytes = pitch * dtype.itemsize
        self.blocks = blocks
        self.site = site
        self.name = name
        self.kind = kind
        self.strides = row_major(shape) if strides is None else strides
        self.whole: tuple[int, Any] | None = None
        self.tile_rank = 0
        self.address: int | None = None
        self.partition = 0
        self.block_addresses: tuple[int, ...] = ()
        self.complete = False
        self.touched = False
        self.factory: Callable[[], npt.NDArray[Any]] | None = None
        self._data: npt.NDArray[Any] | None = None
        self._boxes: list[Box] = []
        self._marks: npt.NDArray[np.bool_] | None = None

    @property
    def data(self) -> npt.NDArray[Any]:
        """The storage: one dimension, of the type `element`; made on first use, zeroed."""
        if self._data is not None:
            return self._data
        owned = None if self._elements is None else self._elements()
        if owned is not None and owned.data is not None:
            return owned.data
        made = np.zeros(self.lines * self.pitch, self.element) if self.factory is None else self.factory()
        if owned is not None:
            owned.data = made
        else:
            self._data = made
        return made

    @data.setter
    def data(self, values: npt.NDArray[Any]) -> None:
        self._data = values

    def elements(self) -> Elements:
        """The values, for a view to own."""
        owned = None if self._elements is None else self._elements()
        if owned is None:
            owned = Elements()
            self._elements = ref(owned)
        return owned

    def hold_argument(self, values: npt.NDArray[Any], borrowed: bool = False) -> None:
        """Take an argument's elements: one dimension, of the declared type.

        Args:
            values: The elements.
            borrowed: Whether they have to stay as they are, also where they could be written in place.
        """
        self._data = values
        self.borrowed = borrowed or values.dtype != self.element or not values.flags.writeable

    def make_own(self) -> None:
        """Hold a borrowed argument in an array of its own from now on, on all cores: it is written."""
        if self.borrowed:
            held = self.data
            own = as_element(held, self.element)
            own = own.copy() if own is held else own
            for known in (self, *self.peers):
                known._data, known.borrowed = own, False

    @property
    def bytes_per_partition(self) -> int:
        """Bytes of each partition that it takes, all blocks together."""
        return self.pitch_bytes * self.blocks

    @property
    def partitions(self) -> int:
        """Partitions that it takes."""
        return self.lines // self.blocks

    def written_all(self) -> None:
        """Everything holds data from now on."""
        self.complete = self.touched = True
        self._boxes, self._marks = [], None

    def mark(self, first: int, last: int, low: int, high: int) -> None:
        """Note that a box was written."""
        self.touched = True
        if first == 0 and low == 0 and last >= self.lines and high >= self.pitch_bytes:
            self.written_all()
            return
        if self._marks is not None:
            self._marks[first:last, low:high] = True
            self.complete = bool(self._marks.all())
            return
        box = _merged(self._boxes, (first, last, low, high))
        if box[0] == 0 and box[1] >= self.lines and box[2] == 0 and box[3] >= self.pitch_bytes:
            self.written_all()
        elif len(self._boxes) > _MAXIMUM_BOXES:
            self._to_marks()

    def holds(self, first: int, last: int, low: int, high: int) -> int:
        """How much of a box was written: 0 nothing, 1 a part, 2 all."""
        if self.complete:
            return 2
        if not self.touched:
            return 0
        if self._marks is None:
            part = 0
            for box in self._boxes:
                if box[0] <= first and last <= box[1] and box[2] <= low and high <= box[3]:
                    return 2
                if box[0] < last and first < box[1] and box[2] < high and low < box[3]:
                    part = 1
            if not part:
                return 0
            self._to_marks()
        assert self._marks is not None
        inside = self._marks[first:last, low:high]
        return 2 if inside.all() else int(inside.any())

    def _to_marks(self) -> None:
        if self.lines * self.pitch_bytes > 1 << 26:  # too large to keep a byte map of: take it as written
            self.written_all()
            return
        self._marks = np.zeros((self.lines, self.pitch_bytes), np.bool_)
        for first, last, low, high in self._boxes:
            self._marks[first:last, low:high] = True
        self._boxes = []
        self.complete = bool(self._marks.all())


def _merged(boxes: list[Box], box: Box) -> Box:
    """Add a box, joined with those that it continues; returns the joined box."""
    first, last, low, high = box
    again = True
    while again:
        again = False
        for index, (f, l, a, b) in enumerate(boxes):  # noqa: E741  # l stands for last beside f, a, b
            if f <= first and last <= l and a <= low and high <= b:
                return boxes[index]
            same_lines = f == first and l == last and a <= high and low <= b
            same_bytes = a == low and b == high and f <= last and first <= l
            inside = first <= f and l <= last and low <= a and b <= high
            if same_lines or same_bytes or inside:
                first, last, low, high = min(f, first), max(l, last), min(a, low), max(b, high)
                del boxes[index]
                again = True
                break
    boxes.append((first, last, low, high))
    return boxes[-1]
