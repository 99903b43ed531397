"""The Program: what a NeuronCore runs, as tables. The waist of the whole system.

Everything above (PyTorch, JAX, NKI, the compiler) produces Programs; everything below (the simulator,
the profile) consumes them. A Program says *what* happens and *in which order it must happen*, never how
long it takes: durations belong to `neuron_tools.hardware` and the simulator, so the same Program can be
timed on other hardware or with a cause removed (what-if).

Order and synchronisation
    * Instructions of one engine run in table order (engines are in-order); between engines only
      semaphores order anything. The interleaving of different engines' rows carries no meaning.
    * A semaphore starts at 0 and only counts up. A wait `(semaphore, value)` holds an instruction at the
      head of its engine until the semaphore is >= value. An instruction adds 1 to its `signal` semaphore
      when it completes; a DMA adds its `increment` to its `semaphore` when its last byte is written.
    * A DMA is started by an instruction (`Opcode.DMA_TRIGGER`, column `dma`). DMAs of one queue run in the
      order in which they are triggered; queues share the DMA engines.
    * A collective is a DMA (column `collective`) on a queue of kind COLLECTIVE. It moves when the last rank
      of its group has triggered its part.
    * A logical NeuronCore of two physical ones runs two Programs. A wait for `peer_semaphore(s)` waits for
      semaphore s of the other core's Program; timed without it, for the Program's own, as if both kept step.

All tables are NumPy structured arrays (structure of arrays is the simulator's own business).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, IntFlag
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.frozen import frozen


class Engine(IntEnum):
    """The engines of a NeuronCore (values are the `engine` column)."""

    TENSOR = 0
    VECTOR = 1
    SCALAR = 2
    GPSIMD = 3
    SYNC = 4

    @property
    def title(self) -> str:
        """The spelling of the `Instruction.engine` column: "Tensor", "Vector", "Scalar", "GpSimd", "Sync"."""
        return "GpSimd" if self is Engine.GPSIMD else self.name.capitalize()


class Opcode(IntEnum):
    """Instructions, named as the published profiles name them (`Instruction.opcode`)."""

    NOP = 0
    LDWEIGHTS = 1  # Tensor: load the stationary operand (partitions x columns)
    MATMUL = 2  # Tensor: stream `elements` columns past the stationary operand into PSUM
    TRANSPOSE = 3  # Tensor: a matmul in transpose mode
    ACTIVATE = 4  # Scalar: func(in * scale + bias), optional reduction
    ACT_TABLE_LOAD = 5  # Scalar: load the table of an activation function
    TENSOR_TENSOR = 6
    TENSOR_SCALAR = 7
    SCALAR_TENSOR_TENSOR = 8
    TENSOR_REDUCE = 9
    TENSOR_COPY = 10
    TENSOR_COPY_PREDICATED = 11
    TENSOR_TENSOR_SCAN = 12
    RECIPROCAL = 13
    MEMSET = 14
    BN_STATS = 15
    BN_AGGREGATE = 16
    MAX8 = 17
    FIND_INDEX8 = 18
    MATCH_REPLACE8 = 19
    SELECT_REDUCE = 20
    RANGE_SELECT = 21
    STREAM_SHUFFLE = 22
    IOTA = 23  # GpSimd
    AFFINE_SELECT = 24  # GpSimd
    LOCAL_GATHER = 25  # GpSimd
    PARTITION_REDUCE = 26  # GpSimd
    CUSTOM_OP = 27  # GpSimd
    RANDOM = 28  # random numbers
    DROPOUT = 29
    DMA_TRIGGER = 30  # any engine: start row `dma` of the DMA table
    EVENT_SEMAPHORE = 31  # wait and/or signal, nothing else


class Memory(IntEnum):
    """Where an operand lives."""

    NONE = 0
    HBM = 1
    SBUF = 2
    PSUM = 3
    HOST = 4
    REGISTER = 5


class DType(IntEnum):
    """Element types the engines know; `name` in lower case is the StableHLO-like spelling."""

    NONE = 0
    F32 = 1
    BF16 = 2
    F16 = 3
    FP8 = 4
    TF32 = 5
    I32 = 6
    I16 = 7
    I8 = 8
    U32 = 9
    U16 = 10
    U8 = 11
    I64 = 12
    BOOL = 13
    F64 = 14

    @property
    def byte_count(self) -> int:
        """Bytes of one element."""
        return _DTYPE_BYTES[self]


_DTYPE_BYTES = {
    DType.NONE: 0, DType.F32: 4, DType.BF16: 2, DType.F16: 2, DType.FP8: 1, DType.TF32: 4, DType.I32: 4,
    DType.I16: 2, DType.I8: 1, DType.U32: 4, DType.U16: 2, DType.U8: 1, DType.I64: 8, DType.BOOL: 1,
    DType.F64: 8,
}  # fmt: skip


class Flag(IntFlag):
    """Bits of the instruction column `flags`."""

    NONE = 0
    ACCUMULATE = 1  # matmul adds to what PSUM holds
    TRANSPOSE = 2  # moves data only to turn it (counts as transpose FLOPs)
    SPILL_SAVE = 4
    SPILL_RELOAD = 8
    SECOND_OPERAND_PSUM = 16  # tensor_tensor: exactly one of two inputs is in PSUM
    REDUCES = 32  # also writes an accumulated reduction (activation_reduce, tensor_scalar_reduce)
    STRIDED = 64  # the innermost access is not contiguous: no performance mode
    ESTIMATE = 128  # stands for an operation whose instructions are not published
    FP32_HALF = 256  # fp32 matmul that is one of the two instructions (LOW, HIGH) of a logical one
    CORE_BARRIER = 512  # where the physical cores of a logical one meet: the trigger that tells, and the wait


class QueueKind(IntEnum):
    """How descriptors are made (`DmaPacketAggregated.queue_type` of schema 7.4.0)."""

    INSTRUCTION = 0
    INPUT = 1
    OUTPUT = 2
    DATA = 3
    SOFTWARE_DYNAMIC = 4
    HARDWARE_DYNAMIC = 5
    COLLECTIVE = 6  # not of the schema: a stream of collectives


class Purpose(IntEnum):
    """Why bytes move: decides the queue name and the byte counters of the summary."""

    INPUT = 0
    WEIGHT = 1
    OUTPUT = 2
    INTERMEDIATE = 3
    SPILL_SAVE = 4
    SPILL_RELOAD = 5


class CollectiveKind(IntEnum):
    """What ranks do together."""

    ALL_REDUCE = 0
    ALL_GATHER = 1
    REDUCE_SCATTER = 2
    ALL_TO_ALL = 3
    BROADCAST = 4
    PERMUTE = 5  # every rank sends to one and receives from one; also send and receive
    BARRIER = 6


class TensorKind(IntEnum):
    """What a tensor is to the model."""

    INPUT = 0
    WEIGHT = 1
    OUTPUT = 2
    INTERMEDIATE = 3
    CONSTANT = 4


INSTRUCTION_DTYPE = np.dtype(
    [
        ("engine", "u1"),
        ("input_dtype", "u1"),
        ("output_dtype", "u1"),
        ("source_memory", "u1"),
        ("destination_memory", "u1"),
        ("opcode", "u2"),
        ("activation", "u2"),  # index into Program.activations; 0 = none
        ("flags", "u2"),
        ("partitions", "u2"),  # partitions used; for MATMUL/LDWEIGHTS/TRANSPOSE the contraction rows K <= 128
        ("columns", "u2"),  # MATMUL/LDWEIGHTS/TRANSPOSE: stationary columns M <= 128; else 0
        ("elements", "i4"),  # elements per partition in the free dimension; MATMUL: moving columns N <= 512
        ("dma", "i4"),  # DMA_TRIGGER: row of the DMA table; else -1
        ("hlo", "i4"),  # row of Program.hlo; -1 = none
        ("first_wait", "i4"),  # waits are rows first_wait .. first_wait + wait_count of the wait table
        ("wait_count", "u2"),
        ("signal", "i4"),  # semaphore that gains 1 at completion; -1 = none
        ("source", "i4"),  # tile read (first operand), row of the tile table; -1 = none
        ("second_source", "i4"),  # tile read (second operand); -1 = none
        ("destination", "i4"),  # tile written; -1 = none
        ("parameter", "i4"),  # tile read as a parameter, one element per partition; -1 = none
        ("second_parameter", "i4"),
        ("open_engines", "u1"),  # bits of the engines that `engine` was chosen from; 0 = the kernel fixed it
    ]
)

READ_COLUMNS = ("source", "second_source", "parameter", "second_parameter")
"""Columns of an instruction that name a tile that it reads."""
TILE_COLUMNS = (*READ_COLUMNS, "destination")
"""Columns of an instruction that name a tile."""

WAIT_DTYPE = np.dtype([("semaphore", "i4"), ("value", "i4")])

DMA_DTYPE = np.dtype(
    [
        ("queue", "u2"),  # row of Program.queues
        ("source_memory", "u1"),
        ("destination_memory", "u1"),
        ("purpose", "u1"),
        ("dtype", "u1"),
        ("transpose", "u1"),
        ("strided", "u1"),  # 1: each descriptor starts a new stretch of HBM; 0: they follow one another
        ("cast", "u1"),  # bytes that stream for one of `bytes`, where the other side has a wider type; else 0
        ("bytes", "i8"),  # bytes moved in all (read = written); as HBM counts them where types differ
        ("descriptor_bytes", "i4"),  # contiguous bytes of one descriptor (element) of the smaller side
        ("descriptors", "i4"),  # how many of them
        ("partitions", "u2"),  # SBUF partitions touched
        ("tensor", "i4"),  # row of Program.tensors; -1 = none
        ("tile", "i4"),  # SBUF tile read or written, row of the tile table; -1 = none
        ("hlo", "i4"),
        ("semaphore", "i4"),
        ("increment", "i4"),
        ("collective", "i4"),  # row of Program.collectives; -1 = none
    ]
)

TILE_DTYPE = np.dtype(
    [
        ("memory", "u1"),
        ("address", "i4"),  # byte offset inside each partition
        ("bytes_per_partition", "i4"),
        ("start_partition", "u2"),
        ("partitions", "u2"),
        ("tensor", "i4"),  # row of Program.tensors; -1 = scratch
        ("first_use", "i4"),  # instruction row that first writes it (a DMA_TRIGGER for loads)
        ("last_use", "i4"),  # instruction row that last reads or writes it
    ]
)


@frozen
class Frame:
    """One source frame. `line` counts from 1; 0 = unknown."""

    file: str
    line: int
    function: str = ""


@frozen
class FrameworkOperation:
    """One operation as the user's framework names it, with where it came from.

    `stack` is innermost (user) frame first. An eager operation has no stack or module here: they belong
    to each execution and are joined when the profile is written.
    """

    name: str  # e.g. "aten::addmm"
    module_path: str = ""  # e.g. "model.layers.0.mlp"
    module_class: str = ""  # e.g. "Linear"
    stack: tuple[Frame, ...] = ()
    backward: bool = False
    recomputed: bool = False  # in a backward pass, of the forward pass
    sequence: int = -1  # autograd sequence number that ties backward to forward; -1 = unknown


@frozen
class HloOperation:
    """One HLO operation that the program executes (after fusion: the fused one).

    `framework` are rows of Program.framework with `shares` (same length, sum 1.0): the part of the
    operation's time that each is charged with; the first is the one the instruction's columns name.
    """

    name: str  # unique in the program, e.g. "dot_general.12"
    opcode: str  # e.g. "dot_general", "fusion", "custom_call"
    framework: tuple[int, ...]
    shares: tuple[float, ...]
    model_flops: int = 0  # 2 x multiply-accumulates of the mathematics, whatever the lowering
    shape: str = ""  # result type, e.g. "bf16[128,4096]"
    kernel: str = ""  # key of the ready Program (an NKI kernel) that it runs; its rows stand in that order


@frozen
class Tensor:
    """A tensor in HBM known to the program."""

    name: str
    kind: TensorKind
    dtype: DType
    shape: tuple[int, ...]

    @property
    def byte_count(self) -> int:
        """Size in bytes, dense."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count * self.dtype.byte_count


@frozen
class Queue:
    """A DMA queue: who triggers it and how its descriptors are made."""

    name: str  # e.g. "qSyncInput0"
    engine: Engine
    kind: QueueKind


@frozen
class Collective:
    """One rank's part in an operation of several ranks.

    The n-th collective of a rank on a group meets the n-th one of every other rank of that group.
    """

    kind: CollectiveKind
    byte_count: int  # of the larger of a rank's input and output
    group: tuple[int, ...]  # logical cores that take part, this one among them
    dtype: DType = DType.NONE
    name: str = ""


def peer_semaphore(semaphore: Any) -> Any:
    """A semaphore of the logical NeuronCore's other physical core as a wait names it, and back."""
    return -2 - semaphore


def empty_table(dtype: np.dtype, rows: int = 0) -> npt.NDArray[np.void]:
    """A table of `rows` zeroed rows in which every reference column ('i4' rows) is -1."""
    table = np.zeros(rows, dtype)
    references = (
        "dma",
        "hlo",
        "signal",
        "source",
        "second_source",
        "destination",
        "parameter",
        "second_parameter",
        "tensor",
        "tile",
        "semaphore",
        "collective",
    )
    for column in references:
        if dtype.names and column in dtype.names:
            table[column] = -1
    return table


TABLE_DTYPES = {
    "instructions": INSTRUCTION_DTYPE,
    "waits": WAIT_DTYPE,
    "dmas": DMA_DTYPE,
    "tiles": TILE_DTYPE,
}
"""What the tables of a Program hold, by their names."""


def conform(table: npt.NDArray[np.void], dtype: np.dtype) -> npt.NDArray[np.void]:
    """A stored table with the columns of today: those that it lacks get their neutral value."""
    if table.dtype == dtype:
        return table
    whole = empty_table(dtype, len(table))
    for name in set(dtype.names or ()) & set(table.dtype.names or ()):
        whole[name] = table[name]
    return whole


@dataclass(frozen=True)
class Program:
    """Instruction, DMA, semaphore, tile and tensor tables with their source table. See the module's text."""

    name: str
    target: str  # generation it was tiled for, e.g. "trn2"
    instructions: npt.NDArray[np.void]
    waits: npt.NDArray[np.void]
    dmas: npt.NDArray[np.void]
    tiles: npt.NDArray[np.void]
    semaphore_count: int
    queues: tuple[Queue, ...]
    tensors: tuple[Tensor, ...]
    hlo: tuple[HloOperation, ...]
    framework: tuple[FrameworkOperation, ...]
    activations: tuple[str, ...] = ("",)
    collectives: tuple[Collective, ...] = ()
    warnings: tuple[str, ...] = ()  # e.g. operations without a native lowering
    metadata: Mapping[str, str] = field(default_factory=dict)
    physical_cores: int = 1  # of the logical NeuronCore that runs it
    second: Program | None = None  # what the second of two cores runs; None: the same as the first

    @property
    def of_cores(self) -> tuple[Program, ...]:
        """The Program of each physical core."""
        if self.physical_cores == 1:
            return (self,)
        return (self, self.second or self)


def joined_cores(programs: Sequence[Program]) -> Program:
    """One or two physical cores' Programs as what their logical NeuronCore runs."""
    first, *others = programs
    if not others:
        return first
    return replace(first, physical_cores=2, second=None if others[0] is first else others[0])


def with_framework(program: Program, framework: tuple[FrameworkOperation, ...]) -> Program | None:
    """The same code for another module that runs it.

    Args:
        program: Compiled for the first module.
        framework: Of the other module: the same operations, in the same order.

    Returns:
        The Program with these rows; None where it has others than the operations named.
    """
    if [row.name for row in program.framework] != [row.name for row in framework]:
        return None
    second = program.second and with_framework(program.second, framework)
    if program.second and second is None:
        return None
    return replace(program, framework=framework, second=second)
