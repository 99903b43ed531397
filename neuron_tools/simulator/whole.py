"""Checks Programs from outside whole: whatever they are used for next may trust their tables.

Every breach is a ProgramError of one sentence. `check` also tells whether a core could run a Program.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.records.program import DType, Memory, Program, Purpose
from neuron_tools.simulator.errors import ProgramError
from neuron_tools.simulator.references import check_references

MOST_IDLE_SEMAPHORES = 1024
"""More semaphores than there are instructions and DMAs that could change them: builders may reserve some."""
LARGEST_BYTES = 1 << 48
"""Of one tensor or transfer: more than all memory of any host or chip."""
_ENUMERATIONS = (
    ("instructions", "input_dtype", DType),
    ("instructions", "output_dtype", DType),
    ("instructions", "source_memory", Memory),
    ("instructions", "destination_memory", Memory),
    ("dmas", "source_memory", Memory),
    ("dmas", "destination_memory", Memory),
    ("dmas", "purpose", Purpose),
    ("dmas", "dtype", DType),
    ("tiles", "memory", Memory),
)
_SIZES = (
    ("instructions", "elements"),
    ("dmas", "descriptor_bytes"),
    ("dmas", "descriptors"),
    ("tiles", "address"),
    ("tiles", "bytes_per_partition"),
)


def check_whole(program: Program) -> None:
    """Refuse a Program whose tables do not fit each other, on whatever core it is to run.

    Linear in its rows.

    Raises:
        ProgramError: A value that no Program has: an unknown enumeration, a missing row, a size below 0.
    """
    if program.physical_cores not in (1, 2) or (program.second and program.physical_cores == 1):
        raise ProgramError(f"Program {program.name!r} is for a number of cores that no NeuronCore has.")
    if program.second is not None:
        check_whole(program.second)
    _check_semaphores(program)
    for table, column, kind in _ENUMERATIONS:
        if np.any(getattr(program, table)[column] > max(kind)):
            raise ProgramError(f"Program {program.name!r}: {column} of its {table} has an unknown value.")
    check_references(program)
    for table, column in _SIZES:
        if np.any(getattr(program, table)[column] < 0):
            raise ProgramError(f"Program {program.name!r}: {column} of its {table} is negative.")
    rows = len(program.instructions)
    _check_rows(program, "tiles", "tensor", program.tiles["tensor"], len(program.tensors))
    _check_rows(program, "tiles", "first_use", program.tiles["first_use"], rows)
    _check_rows(program, "tiles", "last_use", program.tiles["last_use"], rows)
    _check_rows(program, "dmas", "hlo", program.dmas["hlo"], len(program.hlo))
    _check_operations(program)
    _check_byte_counts(program)


def _check_semaphores(program: Program) -> None:
    """Semaphores cost memory."""
    most = len(program.instructions) + len(program.dmas) + MOST_IDLE_SEMAPHORES
    if not 0 <= program.semaphore_count <= most:
        raise ProgramError(
            f"Program {program.name!r} asks for {program.semaphore_count} semaphores; its instructions and "
            f"DMAs use {most} at most."
        )


def _check_rows(
    program: Program, table: str, column: str, values: npt.NDArray[np.generic], limit: int
) -> None:
    """Refuse references to rows that do not exist; -1 is none."""
    numbers = values.astype(np.int64)
    if np.any((numbers < -1) | (numbers >= limit)):
        raise ProgramError(f"Program {program.name!r}: {column} of its {table} names what does not exist.")


def _check_operations(program: Program) -> None:
    known = range(len(program.framework))
    for operation in program.hlo:
        if len(operation.framework) != len(operation.shares) or any(
            row not in known for row in operation.framework
        ):
            raise ProgramError(f"Program {program.name!r}: {operation.name!r} names what does not exist.")
        if not all(0 <= share <= 1 for share in operation.shares):
            raise ProgramError(f"Program {program.name!r}: shares of {operation.name!r} are not from 0 to 1.")


def _check_byte_counts(program: Program) -> None:
    moved = program.dmas["bytes"]
    if np.any((moved < 0) | (moved > LARGEST_BYTES)):
        raise ProgramError(f"Program {program.name!r}: a DMA moves a number of bytes that no memory holds.")
    for tensor in program.tensors:
        if any(extent < 0 for extent in tensor.shape) or tensor.byte_count > LARGEST_BYTES:
            raise ProgramError(f"Program {program.name!r}: tensor {tensor.name!r} has no possible size.")
    for part in program.collectives:
        if not 0 <= part.byte_count <= LARGEST_BYTES or any(rank < 0 for rank in part.group):
            raise ProgramError(f"Program {program.name!r}: collective {part.name!r} has no possible size.")
