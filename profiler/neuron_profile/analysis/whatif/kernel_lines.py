"""Which line of its kernel each instruction of a kept program came from, as the profile's rows tell it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile
from neuron_tools.records.program import Program

NO_LINE = -1
_ROWS = """
SELECT pc, coalesce(source_file, '') AS file, coalesce(source_line, 0) AS line
FROM Instruction
WHERE nki_source_location IS NOT NULL AND pc IS NOT NULL AND start_ts >= ? AND start_ts <= ?
    AND coalesce(process_idx, 0) = ? AND coalesce(pcore_idx, 0) = ?
"""


@frozen
class KernelLines:
    """Lines of kernels that a program's instructions came from.

    Attributes:
        places: File and line of each.
        instruction: (instructions,) row of `places`, `NO_LINE` outside kernels.
        dma: (DMAs,) the same of the instruction that starts each.
    """

    places: tuple[tuple[str, int], ...]
    instruction: npt.NDArray[np.int64]
    dma: npt.NDArray[np.int64]


@dataclass(frozen=True)
class ProgramWithLines(Program):
    """A program that knows the lines of its kernels; `lines` is None for other programs."""

    lines: KernelLines | None = None


def kernel_lines(program: Program) -> KernelLines | None:
    """The lines that a program knows."""
    return program.lines if isinstance(program, ProgramWithLines) else None


def with_kernel_lines(
    profile: Profile, program: Program, process: int, core: int, window: tuple[int, int]
) -> Program:
    """The program with the lines of its kernels; itself where no kernel is in it.

    Args:
        profile: The profile that has its rows.
        program: What ran.
        process: Where one of its executions ran.
        core: The same: which core of the process.
        window: When that execution began and ended, ns.
    """
    if program.second is not None:
        second = with_kernel_lines(profile, program.second, process, core + 1, window)
        program = program if second is program.second else replace(program, second=second)
    rows = profile.query(_ROWS, [*window, process, core])
    if not rows.num_rows:
        return program
    places = list(zip(rows["file"].to_pylist(), rows["line"].to_pylist()))
    known = {place: number for number, place in enumerate(dict.fromkeys(places))}
    pc = rows["pc"].to_numpy().astype(np.int64)
    inside = (pc >= 0) & (pc < len(program.instructions))
    instruction = np.full(len(program.instructions), NO_LINE, np.int64)
    instruction[pc[inside]] = np.array([known[place] for place in places], np.int64)[inside]
    dma = np.full(len(program.dmas), NO_LINE, np.int64)
    moved = program.instructions["dma"]
    dma[moved[moved >= 0]] = instruction[moved >= 0]
    columns = {field.name: getattr(program, field.name) for field in fields(Program)}
    return ProgramWithLines(**columns, lines=KernelLines(tuple(known), instruction, dma))
