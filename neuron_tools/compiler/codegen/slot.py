"""What a tile loop is made of: buffers of tiles, the DMA side of a step, and the steps."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.compiler.allocate import Block
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode, Purpose

PerIteration = int | Ints


@dataclass(eq=False)
class Slot:
    """A tile of the loop body: `buffers` physical tiles used in turn."""

    name: str
    memory: Memory
    bytes_per_partition: int
    partitions: int
    dtype: DType
    version: Ints  # (iterations,) content number seen by each iteration; counts up from 0
    tensor: int = -1
    stationary: bool = False  # one content for the whole loop
    extra_buffers: int = 0
    least_buffers: int = 0  # contents that are there at one time in any case
    read_first: bool = False  # a stage later its readers come before the next content's writer
    buffers: int = 0
    blocks: list[Block] = field(default_factory=list)
    first_tile: int = -1
    given: Ints | None = None  # ([steps,] versions) tokens of contents made before the loop
    keep: bool = False  # not released at the loop's end: the caller owns it from then on
    whole: bool = False  # a buffer for every content: all of them are there at the loop's end
    stays: bool = False  # weights that are there from one execution to the next
    tiles: Ints | None = None  # (versions,) row of the tile table of a content made before the loop

    @property
    def contents(self) -> int:
        """How many contents it has in the loop."""
        return int(self.version.max()) + 1


@dataclass(eq=False)
class Transfer:
    """The DMA side of a step."""

    queue: int
    source_memory: Memory
    destination_memory: Memory
    bytes: PerIteration
    descriptor_bytes: int
    partitions: PerIteration
    purpose: Purpose
    dtype: DType
    tensor: int = -1
    transpose: bool = False
    strided: bool = False  # descriptors do not follow one another in HBM


@dataclass(eq=False)
class Step:
    """One instruction (or DMA trigger) of the body."""

    engine: Engine
    opcode: Opcode
    reads: tuple[Slot, ...]
    writes: tuple[Slot, ...]
    partitions: PerIteration
    elements: PerIteration
    columns: PerIteration
    input_dtype: DType
    output_dtype: DType
    activation: int
    flags: Flag
    active: npt.NDArray[np.bool_] | None
    after: tuple[int, ...]
    transfer: Transfer | None
    accumulates: bool
    hlo: int
    pinned_stage: int | None = None
    in_turn: bool = False
    opens_stage: bool = True
    stage: int = 0
    rows: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # (iterations,) row, -1 inactive
    tokens: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    is_left_out: bool = False  # a load of weights that stay from one execution to the next

    @property
    def loaded_weight(self) -> int:
        """The weight that it brings from HBM into SBUF; -1 where it does not."""
        transfer = self.transfer
        is_load = transfer is not None and transfer.purpose is Purpose.WEIGHT and self.writes
        return transfer.tensor if transfer is not None and is_load else -1

    @property
    def bytes(self) -> int:
        """All that its transfers move."""
        if self.transfer is None:
            return 0
        active = self.writes[0].version >= 0 if self.active is None else self.active
        return int((self.transfer.bytes * active).sum())
