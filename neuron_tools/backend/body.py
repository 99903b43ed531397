"""What the passes hand on: calls in an order, over virtual buffers that have no address yet."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Int32s, Ints
from neuron_tools.backend.kinds import Kind
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.kernel_source import Transformation
from neuron_tools.records.program import Memory

KIND, SITE, ITERATION, FIRST_WRITE, FIRST_READ, COLUMNS = 0, 1, 2, 3, 5, 9
"""Columns of a row of calls: kind, site, iteration, two regions written, four regions read (-1: none)."""
BUFFER, FIRST_LINE, LAST_LINE, FIRST_BYTE, LAST_BYTE = range(5)
"""Columns of a row of regions; ends are exclusive."""

SCRATCH, INPUT, OUTPUT, CONSTANT, SPILL = range(5)
"""Roles of buffers."""


@dataclass(slots=True)
class Buffers:
    """The buffers as columns of one length.

    Attributes:
        memory: Which memory (`Memory`).
        lines: Partitions (times blocks where they could not be told apart), or rows of a tensor in HBM.
        pitch_bytes: Bytes of a line.
        partitions: Lines of a block.
        address: Byte in each partition where the kernel put it; -1 where it left the place open.
        role: SCRATCH, INPUT, OUTPUT, CONSTANT or SPILL.
        origin: The kernel's tensor that it is, or is a part of.
    """

    memory: npt.NDArray[np.uint8]
    lines: Ints
    pitch_bytes: Ints
    partitions: Ints
    address: Ints
    role: npt.NDArray[np.uint8]
    origin: Ints

    def __len__(self) -> int:
        return len(self.memory)

    @property
    def on_chip(self) -> npt.NDArray[np.bool_]:
        """Whether each lies in SBUF or PSUM."""
        return np.asarray((self.memory == int(Memory.SBUF)) | (self.memory == int(Memory.PSUM)))

    @property
    def bytes_per_partition(self) -> Ints:
        """Bytes that each takes of a partition."""
        return np.asarray(self.pitch_bytes * np.maximum(self.lines // np.maximum(self.partitions, 1), 1))

    def take(self, rows: Ints) -> Buffers:
        """Copies of some of them, in that order."""
        return Buffers(*(getattr(self, column.name)[rows] for column in fields(self)))

    def joined(self, others: Buffers) -> Buffers:
        """These and then others."""
        return Buffers(
            *(
                np.concatenate([getattr(self, column.name), getattr(others, column.name)])
                for column in fields(self)
            )
        )


@dataclass(slots=True)
class Body:
    """A kernel between two passes.

    Attributes:
        core: The NeuronCore that it is for.
        rows: (calls, COLUMNS) in program order.
        regions: (regions, 5) that the rows refer to.
        kinds: What a row's kind stands for.
        buffers: What a region's buffer stands for.
        origin: (calls,) the kernel's own call that each is; -1 where a pass put it in.
        ties: (later, earlier) of the kernel's own calls that it ordered itself.
        ordered: (first, end) spans of the kernel's own calls that stay in their order.
        block_addresses: Addresses of the blocks of buffers that the kernel placed and that stayed whole.
        iterations: (iterations, 3) of the kernel's loops: enclosing iteration, loop, value of its variable.
        loops_open: Whether the compiler's passes over loops see the kernel: those of the older dialect do.
        changes: What the passes so far changed.
    """

    core: NeuronCore
    rows: Int32s
    regions: Int32s
    kinds: list[Kind]
    buffers: Buffers
    origin: Ints
    ties: tuple[tuple[int, int], ...] = ()
    ordered: tuple[tuple[int, int], ...] = ()
    block_addresses: dict[int, tuple[int, ...]] = field(default_factory=dict)
    iterations: Int32s = field(default_factory=lambda: np.zeros((0, 3), np.int32))
    loops_open: bool = False
    changes: tuple[Transformation, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_placed(self) -> bool:
        """Whether the kernel gave any buffer its address."""
        return bool((self.buffers.address >= 0).any())

    @property
    def is_open(self) -> bool:
        """Whether there are calls, whose places and order the kernel leaves to the compiler."""
        return bool(len(self)) and not self.ties and not self.ordered and not self.is_placed

    @property
    def covers_tile(self) -> npt.NDArray[np.bool_]:
        """Whether each region is all of a buffer of one block. Shape (regions,)."""
        regions, buffers = self.regions, self.buffers
        tile = regions[:, BUFFER]
        lines = (regions[:, FIRST_LINE] == 0) & (regions[:, LAST_LINE] == buffers.lines[tile])
        columns = (regions[:, FIRST_BYTE] == 0) & (regions[:, LAST_BYTE] == buffers.pitch_bytes[tile])
        return np.asarray(lines & columns & (buffers.lines[tile] == buffers.partitions[tile]))

    def ordered_by(self, order: Ints) -> Body:
        """The same calls in another order (or some of them)."""
        return replace(self, rows=np.ascontiguousarray(self.rows[order]), origin=self.origin[order])

    def kind_column(self, values: list[int] | list[bool]) -> Ints:
        """A number of each kind, for each row."""
        return np.asarray(np.array(values, np.int64)[self.rows[:, KIND]])


def used_regions(rows: Int32s) -> Ints:
    """The regions that rows name, in order."""
    named = np.unique(rows[:, FIRST_WRITE:])
    return np.asarray(named[named >= 0].astype(np.int64))
