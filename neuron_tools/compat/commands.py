"""AWS's compiler command for programs that start it, at the end of the path, so that AWS's own wins."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from neuron_tools.device.build import cache_folder

NAME = "neuronx-cc"
_MODULE = "neuron_tools.compat.compiler_command"


def command_path(environment: Mapping[str, str] = os.environ) -> str:
    """The `PATH` with which programs find the command, also where AWS's is absent.

    Args:
        environment: Variables of the program.

    Returns:
        The `PATH` as it is where the command cannot be written.
    """
    path = environment.get("PATH", os.defpath)
    try:
        folder = str(
            _written(cache_folder() / "commands" / sys.executable.strip(os.sep).replace(os.sep, "-"))
        )
    except OSError:
        return path
    return path if folder in path.split(os.pathsep) else os.pathsep.join([path, folder])


def _written(folder: Path) -> Path:
    """The folder, with a script that runs the command with this Python."""
    file = folder / NAME
    if not file.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        made = folder / f"{NAME}.{os.getpid()}"
        made.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m {_MODULE} "$@"\n')
        made.chmod(0o755)
        made.replace(file)
    return folder
