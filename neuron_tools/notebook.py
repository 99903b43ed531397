"""`python -m neuron_tools.notebook NOTEBOOK` runs a notebook's code cells in this process, as a kernel would.

Each cell is a source file of its own to whatever looks at it, `train.ipynb#3` for the third code cell, so
that profiles of a notebook have lines. With `--cell N` the cells before it run, and that one is recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from neuron_tools.errors import NeuronToolsError, UsageError

SUFFIX = ".ipynb"
_PYTHON = "python"


def code_cells(notebook: Path) -> list[str]:
    """The texts of a notebook's code cells, in order.

    Raises:
        UsageError: It cannot be read, is no notebook, or is one of another language.
    """
    try:
        read = json.loads(notebook.read_text(encoding="utf-8"))
        cells = [cell for cell in read["cells"] if cell["cell_type"] == "code"]
        texts = ["".join(cell["source"]) for cell in cells]
    except OSError as error:
        raise UsageError(f"The notebook {notebook} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(
            f"{notebook} is no notebook of version 4: save it with Jupyter or VS Code."
        ) from error
    language = read.get("metadata", {}).get("kernelspec", {}).get("language", _PYTHON)
    if language != _PYTHON:
        raise UsageError(f"{notebook} is in {language}: only Python's notebooks can be run.")
    return texts


def run(notebook: Path, recorded: int = 0, recording: AbstractContextManager[Any] | None = None) -> bool:
    """Run the cells of a notebook, in its folder, up to the first that fails.

    Args:
        notebook: Its file.
        recorded: Number of the last cell to run, which runs inside `recording`; 0 to run all.
        recording: What records that cell.

    Returns:
        Whether all ran; a traceback was printed otherwise.

    Raises:
        UsageError: It cannot be read or has no such cell.
        NeuronToolsError: IPython, which runs cells and their magics, is missing.
    """
    file = notebook.absolute()
    texts = code_cells(file)
    if recorded > len(texts):
        raise UsageError(f"{notebook} has {len(texts)} code cells, so there is no cell {recorded}.")
    os.chdir(file.parent)
    sys.argv = [str(file)]
    sys.path[0] = str(file.parent)
    shell = _shell()
    for number, text in enumerate(texts[: recorded or None], 1):
        with recording if number == recorded and recording else nullcontext():
            if not _run_cell(shell, f"{file}#{number}", text):
                return False
    return True


def _shell() -> Any:
    """IPython's shell, which runs cells with their magics, without its history on the disk."""
    try:
        from IPython.core.interactiveshell import InteractiveShell
    except ModuleNotFoundError as error:
        raise NeuronToolsError(
            "Running a notebook needs the package 'IPython': install it with 'python -m pip install ipython'."
        ) from error
    shell: Any = InteractiveShell.instance()
    shell.history_manager.enabled = False
    return shell


def _run_cell(shell: Any, name: str, text: str) -> bool:
    """Run one cell, whose code says that it is in a file of this name."""
    shell.compile.get_code_name = lambda *_: name
    return bool(shell.run_cell(text, store_history=True).success)


def main(arguments: Sequence[str]) -> int:
    """Run what the arguments name.

    Returns:
        1 where a cell failed, 2 where the arguments or the notebook are wrong.
    """
    options = _parser().parse_args(arguments)
    try:
        recording = _recording(options) if options.cell else None
        return 0 if run(options.notebook, options.cell, recording) else 1
    except NeuronToolsError as error:
        print(f"python -m neuron_tools.notebook: {error}", file=sys.stderr)
        return error.exit_status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m neuron_tools.notebook",
        description="Run a notebook's code cells on the simulated device.",
        epilog="Options apply to --cell; a whole notebook is recorded by: neuron-profile capture -- NOTEBOOK",
    )
    add = parser.add_argument
    add("notebook", type=Path)
    add("--cell", type=int, default=0, help="code cell to record, from 1; those behind it are not run")
    add("-o", "--output", type=Path, help="the profile to write")
    add("--target", default="trn2", help="generation or instance to simulate [trn2]")
    add("--lnc", type=int, choices=(1, 2), help="physical cores of a logical NeuronCore")
    add("--host-clock", default="measured", choices=("measured", "fixed"), help="how host time is counted")
    add("--eager-fusion", choices=("auto", "on", "off"), help="which eager operations run as one execution")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a hardware figure to change")
    add("--no-host-samples", action="store_true", help="do not sample what the host does")
    return parser


def _recording(options: argparse.Namespace) -> AbstractContextManager[Any]:
    """What records a cell into a profile."""
    from neuron_tools import compat
    from neuron_tools.capture.inline import profile

    if options.output is None or options.cell < 1:
        raise UsageError("--cell needs the number of a code cell, from 1, and -o PROFILE.")
    os.environ.setdefault("NEURON_TOOLS_TIMED", options.target)
    compat.install()
    return profile(
        options.output.absolute(), options.target, options.lnc, options.host_clock, options.set,
        options.eager_fusion, not options.no_host_samples,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
