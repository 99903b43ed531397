"""The programs of a finished profile: what was executed, kept as `.neff` files so that it can be run again.

What-if runs simulate them with a cause removed or on other hardware. Modules that run the same code have one
file; a further one has its own rows of the framework's operations beside it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from neuron_tools.errors import NeuronToolsError
from neuron_tools.neff.archive import Neff, NeffError, read_neff, write_neff
from neuron_tools.neff.files import write_whole
from neuron_tools.records.executable import Executable
from neuron_tools.records.json_values import decode, encode
from neuron_tools.records.program import FrameworkOperation, Program, with_framework

FOLDER = "programs"
_CODE, _FRAMEWORK = "code", "framework"
_DAMAGE = (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError)


def program_file(process_idx: int, number: int) -> str:
    """Where a profile keeps the program of `Executable(process_idx, executable_idx)`, relative to it."""
    return f"{FOLDER}/{process_idx}-{number:06d}.neff"


def _rows_file(process_idx: int, number: int) -> str:
    """Where it keeps what such a program has of its own, if its code is in another one's file."""
    return f"{FOLDER}/{process_idx}-{number:06d}.json"


def keep_programs(directory: Path, process_idx: int, executables: Sequence[Executable]) -> None:
    """Write the programs of one process into a profile, code that several of them have once.

    Raises:
        NeffError: The disk is full.
    """
    (directory / FOLDER).mkdir(exist_ok=True)
    of_code: dict[int, int] = {}
    for executable in executables:
        number = of_code.setdefault(id(executable.program.instructions), executable.number)
        if number == executable.number:
            write_neff(Neff(executable.program), directory / program_file(process_idx, number))
        else:
            _write_rows(executable.program, number, directory / _rows_file(process_idx, executable.number))


def _write_rows(program: Program, code: int, path: Path) -> None:
    """Write the framework's operations of a program and the number of the one that has its code.

    Raises:
        NeffError: The disk is full.
    """
    text = json.dumps({_CODE: code, _FRAMEWORK: encode(program.framework)}, separators=(",", ":"))
    try:
        write_whole(path, lambda file: file.write(text.encode()))
    except OSError as error:
        raise NeffError(f"{path} cannot be written: {error.strerror}.") from error


def load_program(directory: Path, process_idx: int, number: int) -> Program:
    """Read a program back.

    Raises:
        NeuronToolsError: The profile does not hold it: it was imported, or its capture was killed.
    """
    rows = directory / _rows_file(process_idx, number)
    if rows.exists():
        return _with_rows(directory, process_idx, rows)
    path = directory / program_file(process_idx, number)
    if not path.exists():
        raise NeuronToolsError(
            f"{directory} does not hold the program of executable {number}: only captures that reached their "
            "end can be simulated again."
        )
    return read_neff(path).program


def _with_rows(directory: Path, process_idx: int, rows: Path) -> Program:
    """The program whose own rows are in a file.

    Raises:
        NeffError: The file is damaged, or that with the code is.
    """
    try:
        own = json.loads(rows.read_bytes())
        framework = decode(tuple[FrameworkOperation, ...], own[_FRAMEWORK])
        code = directory / program_file(process_idx, int(own[_CODE]))
    except _DAMAGE as error:
        raise NeffError(f"{rows} is damaged and cannot be read: capture again.") from error
    program = with_framework(read_neff(code).program, framework)
    if program is None:
        raise NeffError(f"{rows} does not belong to {code}: capture again.")
    return program
