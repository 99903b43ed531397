"""Where a value is in HBM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from neuron_tools.compiler.codegen.slot import PerIteration, Transfer
from neuron_tools.compiler.codegen.types import memory_dtype
from neuron_tools.compiler.hlo import TensorType
from neuron_tools.records.program import DType, Memory, Purpose, TensorKind

_KINDS = {
    TensorKind.INPUT: Purpose.INPUT,
    TensorKind.WEIGHT: Purpose.WEIGHT,
    TensorKind.CONSTANT: Purpose.WEIGHT,
}


@dataclass
class Location:
    """Where a value is in HBM: a tensor row and, for values made here, what completes it."""

    tensor: int
    type: TensorType
    kind: TensorKind
    tokens: Mapping[int, int] = field(default_factory=dict)
    spilled: bool = False

    @property
    def dtype(self) -> DType:
        """Element type in HBM."""
        return memory_dtype(self.type.dtype)

    @property
    def waits_for_room_only(self) -> bool:
        """Whether it was in HBM before the program began: a load of it needs nothing but room in SBUF."""
        return self.kind in _KINDS and not self.spilled

    @property
    def purpose(self) -> Purpose:
        """Why a load of it moves bytes."""
        return Purpose.SPILL_RELOAD if self.spilled else _KINDS.get(self.kind, Purpose.INTERMEDIATE)

    @property
    def store_purpose(self) -> Purpose:
        """Why a store to it moves bytes."""
        return Purpose.OUTPUT if self.kind is TensorKind.OUTPUT else Purpose.INTERMEDIATE

    def load(
        self, queue: int, elements: PerIteration, run: int, partitions: PerIteration, **layout: bool
    ) -> Transfer:
        """What brings elements into SBUF.

        Args:
            queue: The DMA queue.
            elements: Of a tile.
            run: Elements of a descriptor, which lie together in HBM.
            partitions: That a tile has.
            layout: `transpose` and `strided`, as `Transfer` has them.
        """
        size = self.dtype.byte_count
        return Transfer(
            queue, Memory.HBM, Memory.SBUF, elements * size, run * size, partitions, self.purpose, self.dtype,
            self.tensor, **layout,
        )  # fmt: skip

    def store(self, queue: int, elements: PerIteration, run: int, partitions: PerIteration) -> Transfer:
        """What takes elements out of SBUF; arguments as of `load`."""
        size = self.dtype.byte_count
        return Transfer(
            queue, Memory.SBUF, Memory.HBM, elements * size, run * size, partitions, self.store_purpose,
            self.dtype, self.tensor,
        )  # fmt: skip
