"""`%%neuron_profile` for notebooks: a cell that is captured while it runs, in the notebook's own process."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any, NoReturn

from neuron_tools.errors import NeuronToolsError, UsageError


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%neuron_profile: {message}. {self.format_usage().strip()}")


class _CellFailed(Exception):
    """The cell raised: IPython has shown its traceback."""


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext neuron_profile` calls: adds the magic to a shell."""
    shell.register_magic_function(lambda line, cell: _run(shell, line, cell), "cell", "neuron_profile")


def _run(shell: Any, line: str, cell: str) -> None:
    from IPython.core.error import UsageError as ShellUsageError

    try:
        capture_cell(shell, line, cell)
    except NeuronToolsError as error:
        raise ShellUsageError(str(error)) from None


def capture_cell(shell: Any, line: str, cell: str) -> Path | None:
    """Run a cell under capture and print its summary.

    Args:
        shell: IPython's shell.
        line: The magic's options.
        cell: The cell's text.

    Returns:
        The profile; None where only its help was asked for.

    Raises:
        UsageError: An option is wrong, or the folder exists.
        NeuronToolsError: The framework is missing, or the profile cannot be written.
    """
    from neuron_profile.launch.destination import find_destination
    from neuron_tools.capture.inline import profile

    try:
        options = _parser().parse_args(shlex.split(line))
    except SystemExit:
        return None
    path = find_destination(options.output, "cell", Path.cwd())
    try:
        with profile(path, target=options.target, host_clock=options.host_clock, settings=options.set):
            if shell.run_cell(cell).error_in_exec is not None:
                raise _CellFailed
    except _CellFailed:
        print(f"The cell failed: {path} holds what ran before.")
        return path
    _print_summary(path)
    return path


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="%%neuron_profile", description="Capture what the cell runs on the simulated device."
    )
    parser.add_argument(
        "-o", "--output", type=Path, help="folder of the profile; cell.nprof, cell-2.nprof, ..."
    )
    parser.add_argument("--target", default="trn2", help="generation or instance [trn2]")
    parser.add_argument("--host-clock", default="measured", help="measured or fixed [measured]")
    parser.add_argument(
        "--set", action="append", default=[], help="a hardware figure to change: hbm_bandwidth=2x"
    )
    return parser


def _print_summary(path: Path) -> None:
    from rich.console import Console

    from neuron_profile.reports.summary_output import print_summaries

    print_summaries([str(path)], Console(width=110, force_jupyter=False, color_system=None))
    print(f"Profile: {path.name}  (open it with: !neuron-profile view {path.name})")
