"""The command to capture, as far as it can be understood before it runs: program, interpreter, script."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from neuron_tools.errors import UsageError
from neuron_tools.frozen import frozen
from neuron_tools.notebook import SUFFIX as NOTEBOOK_SUFFIX

_PYTHON_NAME = re.compile(r"(python|pypy)[\d.]*$")
_OPTIONS_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_SHEBANG_BYTES = 256


@frozen
class TargetCommand:
    """A command that exists.

    Attributes:
        arguments: Program and arguments, as they are started.
        interpreter: The Python that runs it, if it is a Python program.
        script: Its script file, if there is one.
    """

    arguments: tuple[str, ...]
    interpreter: Path | None
    script: Path | None


def understand(command: Sequence[str]) -> TargetCommand:
    """Find the program, the interpreter and the script of a command.

    A Python file without execute permission is run with the Python that runs this, a notebook by ours.

    Raises:
        UsageError: There is no command, or the program or script does not exist.
    """
    if not command:
        raise UsageError(
            "No command to capture: write it after --, as in 'neuron-profile capture -- python train.py'."
        )
    arguments = tuple(command)
    if arguments[0].endswith(".py") and Path(arguments[0]).is_file() and not os.access(arguments[0], os.X_OK):
        arguments = (sys.executable, *arguments)
    if arguments[0].endswith(NOTEBOOK_SUFFIX) and Path(arguments[0]).is_file():
        notebook = Path(arguments[0])
        return TargetCommand(
            (sys.executable, "-m", "neuron_tools.notebook", *arguments), Path(sys.executable), notebook
        )
    program = _find_program(arguments[0])
    if _PYTHON_NAME.match(program.name):
        return TargetCommand(arguments, program, _python_script(arguments[1:]))
    return TargetCommand(arguments, _shebang_interpreter(program), program if _is_text(program) else None)


def _find_program(name: str) -> Path:
    found = shutil.which(name)
    if found:
        return Path(found)
    path = Path(name)
    if path.is_dir():
        raise UsageError(f"{name} is a folder, not a command.")
    if path.is_file():
        raise UsageError(
            f"{name} cannot be run: make it executable with 'chmod +x {name}', or name its interpreter."
        )
    if name.endswith(".py"):
        raise UsageError(f"The script {name} does not exist.")
    if name.endswith(NOTEBOOK_SUFFIX):
        raise UsageError(f"The notebook {name} does not exist.")
    raise UsageError(f"The command '{name}' was not found: check its spelling, or give its full path.")


def _python_script(arguments: Sequence[str]) -> Path | None:
    """The script among a Python interpreter's arguments; None for -c, -m, - and interactive use."""
    remaining = iter(arguments)
    for argument in remaining:
        if argument in ("-c", "-m", "-") or re.match(r"-[a-zA-Z]*[cm]$", argument):
            return None
        if argument in _OPTIONS_WITH_VALUE:
            next(remaining, None)
        elif not argument.startswith("-"):
            return _existing_script(argument)
    return None


def _existing_script(name: str) -> Path:
    path = Path(name)
    if not path.exists():
        raise UsageError(f"The script {name} does not exist.")
    if path.is_dir() and not (path / "__main__.py").exists():
        raise UsageError(f"{name} is a folder without __main__.py: name the script to run.")
    return path


def _shebang_interpreter(program: Path) -> Path | None:
    """The Python named in a script's first line (console scripts such as torchrun)."""
    line = _first_line(program)
    if not line.startswith("#!"):
        return None
    words = line[2:].split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    if not words or not _PYTHON_NAME.match(Path(words[0]).name):
        return None
    found = shutil.which(words[0])
    return Path(found) if found else None


def _is_text(program: Path) -> bool:
    return _first_line(program).startswith("#!")


def _first_line(program: Path) -> str:
    try:
        with program.open("rb") as file:
            return file.read(_SHEBANG_BYTES).split(b"\n")[0].decode("utf-8", "replace")
    except OSError:
        return ""
