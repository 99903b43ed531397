"""Kinds of instructions: what all calls with operands of the same forms have in common.

A kind holds the rows of the Program that one call becomes (a matmul is a load of the stationary operand and
a multiplication), so that lowering a million calls is a few array operations.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from neuron_tools.frozen import frozen
from neuron_tools.records.program import CollectiveKind, DType, Engine, Flag, Memory, Opcode

NO_OPERAND = -1
FIRST_WRITE = 0
READS = 2
"""Operand slots of a row: two regions written, then four read."""


@frozen
class Step:
    """One row of the instruction table that a call becomes; columns as of INSTRUCTION_DTYPE.

    Attributes:
        waits: Operand slots (0-1 written, 2-5 read) that this row touches.
        source, second_source: Slots of the operands that it reads, for the tile columns.
        parameters: The same of operands with one element per partition, two at most.
        writes: Slots that are complete when this row is.
        open_engines: Bits of the engines that `engine` was chosen from; 0: the kernel fixed it.
    """

    engine: Engine
    opcode: Opcode
    input_dtype: DType = DType.NONE
    output_dtype: DType = DType.NONE
    source_memory: Memory = Memory.NONE
    destination_memory: Memory = Memory.NONE
    activation: str = ""
    flags: Flag = Flag.NONE
    partitions: int = 0
    columns: int = 0
    elements: int = 0
    waits: tuple[int, ...] = ()
    source: int = NO_OPERAND
    second_source: int = NO_OPERAND
    writes: tuple[int, ...] = ()
    open_engines: int = 0
    parameters: tuple[int, ...] = ()

    def slot(self, column: str) -> int:
        """The slot of the operand that a tile column of the instruction table names."""
        places = {"source": self.source, "second_source": self.second_source}
        parameters = dict(zip(("parameter", "second_parameter"), self.parameters))
        return {**places, **parameters}.get(column, NO_OPERAND)


@frozen
class Transfer:
    """The DMA that a call starts; columns as of DMA_DTYPE.

    Attributes:
        descriptors_by: "hardware", "software" or "runtime": who makes the descriptors.
        engine: The engine that starts it.
        is_open: Whether the kernel leaves open who makes the descriptors and who starts it.
        collective, group: What ranks do together, and which ranks, where it is no copy.
    """

    source_memory: Memory
    destination_memory: Memory
    dtype: DType
    bytes: int
    descriptor_bytes: int
    partitions: int
    transpose: bool = False
    strided: bool = False
    cast: int = 0
    descriptors_by: str = "hardware"
    engine: Engine | None = None
    is_open: bool = False
    collective: CollectiveKind | None = None
    group: tuple[int, ...] = ()


@dataclass(slots=True)
class Kind:
    """One kind of call.

    Attributes:
        name: The call's name, e.g. "nc_matmul".
        steps: Rows that it becomes; for a DMA, empty.
        transfer: The DMA that it is, or None.
        flops: 2 x multiply-accumulates of the mathematics.
        number: Its number in the trace.
        engines: Engines among which the kernel leaves the choice, preferred first; empty: it fixed one.
        constant: What a memset fills with, where it is one number.
        whole: Whether the region that it writes has no gaps.
        straight: Whether it copies bit for bit, every element to the place that it had in its own region.
        tiles: How many of the kernel's calls it does at once, their tiles side by side.
    """

    name: str
    steps: tuple[Step, ...] = ()
    transfer: Transfer | None = None
    flops: int = 0
    number: int = field(default=-1)
    engines: tuple[Engine, ...] = ()
    constant: float | None = None
    whole: bool = False
    straight: bool = False
    tiles: int = 1

    @property
    def leaves_psum(self) -> bool:
        """Whether it only copies from PSUM to SBUF."""
        if len(self.steps) != 1 or self.steps[0].opcode is not Opcode.TENSOR_COPY:
            return False
        step = self.steps[0]
        return step.source_memory is Memory.PSUM and step.destination_memory is Memory.SBUF
