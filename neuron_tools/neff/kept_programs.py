"""The programs of a finished profile: what was executed, kept as `.neff` files so that it can be run again.

What-if runs simulate them with a cause removed or on other hardware.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from neuron_tools.errors import NeuronToolsError
from neuron_tools.neff.archive import Neff, read_neff, write_neff
from neuron_tools.records.executable import Executable
from neuron_tools.records.program import Program

FOLDER = "programs"


def program_file(process_idx: int, number: int) -> str:
    """Where a profile keeps the program of `Executable(process_idx, executable_idx)`, relative to it."""
    return f"{FOLDER}/{process_idx}-{number:06d}.neff"


def keep_programs(directory: Path, process_idx: int, executables: Iterable[Executable]) -> None:
    """Write the programs of one process into a profile.

    Raises:
        NeffError: The disk is full.
    """
    (directory / FOLDER).mkdir(exist_ok=True)
    for executable in executables:
        path = directory / program_file(process_idx, executable.number)
        write_neff(Neff(executable.program), path)


def load_program(directory: Path, process_idx: int, number: int) -> Program:
    """Read a program back.

    Raises:
        NeuronToolsError: The profile does not hold it: it was imported, or its capture was killed.
    """
    path = directory / program_file(process_idx, number)
    if not path.exists():
        raise NeuronToolsError(
            f"{directory} does not hold the program of executable {number}: only captures that reached their "
            "end can be simulated again."
        )
    return read_neff(path).program
