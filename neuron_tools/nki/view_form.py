"""Forms of views: instructions of one kind have operands of the same forms."""

from __future__ import annotations

from neuron_tools.nki.dtypes import DType
from neuron_tools.nki.layout import Shape
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.records.program import Memory


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

    @property
    def dense(self) -> bool:
        """Whether the elements of a partition lie together, in order."""
        return self.run_bytes == self.elements * self.dtype.itemsize

    def lies_as(self, other: ViewForm) -> bool:
        """Whether equal bits lie at equal places of both, for copies bit for bit."""
        if self.dtype is not other.dtype or self.partitions != other.partitions:
            return False
        return (self.dense and other.dense) or (self.shape == other.shape and self.strides == other.strides)
