"""The `neuron_parallel_compile` command: graphs of a trial run, compiled in parallel into the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import click

from neuron_tools import compat
from neuron_tools.command_line import command, run
from neuron_tools.errors import UsageError

if TYPE_CHECKING:
    from neuron_tools.neff.cache import CompileCache

NAME = "neuron_parallel_compile"
IGNORE_VARIABLE = "NEURON_IGNORE_TRAINING_SCRIPT_ERROR_AND_COMPILE"
STEPS = ("collect", "compile", "clean", "clear-locks")


@command(
    name=NAME,
    example=f"{NAME} torchrun --nproc_per_node=2 train.py --steps 5",
    context_settings={"allow_interspersed_args": False},
)
@click.option("--command", "step", type=click.Choice(STEPS), help="Do this step alone.")
@click.option("--target", default="trn2", show_default=True, help="Chip or instance to compile for.")
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
def parallel_compile(step: str | None, target: str, program: Sequence[str]) -> None:
    """Compile the graphs of PROGRAM's trial run ahead, in parallel.

    PROGRAM runs without device time and without compiling; its graphs are then compiled into the compile
    cache, where a later run of it finds them.
    """
    if step in ("clean", "clear-locks"):
        _clean(everything=step == "clean")
        return
    status = _collect(program, target) if step != "compile" else 0
    if status and os.environ.get(IGNORE_VARIABLE) != "1":
        raise click.exceptions.Exit(status)
    if step != "collect":
        _compile()


def _collect(program: Sequence[str], target: str) -> int:
    """Run the program so that its graphs are kept; returns its exit status."""
    if not program:
        raise UsageError(f"{NAME} needs the command of a trial run: {NAME} python train.py")
    environment = {**os.environ, **extraction_environment(target)}
    try:
        return subprocess.run(program, env=environment, check=False).returncode
    except OSError as error:
        raise UsageError(f"{program[0]} cannot be started: {error.strerror}.") from error


def extraction_environment(target: str, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables with which a program's graphs are kept and not compiled."""
    from neuron_tools.capture import extraction, timed_run

    return {
        extraction.VARIABLE: "1",
        timed_run.VARIABLE: target,
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "1",
        "PYTHONPATH": compat.python_path(environment),
    }


def _compile() -> None:
    from neuron_tools.capture import extraction

    cache = _cache()
    files = extraction.extracted(cache)
    failures = {}
    if files:
        with ProcessPoolExecutor(min(len(files), os.cpu_count() or 1)) as pool:
            compiled = pool.map(partial(extraction.compile_extracted, limit_bytes=cache.limit_bytes), files)
            failures = {file: reason for file, reason in zip(files, compiled) if reason}
    for file, reason in failures.items():
        click.echo(f"{file.stem}: {reason}", err=True)
    click.echo(
        f"Total graphs: {len(files)}, compiled: {len(files) - len(failures)}, failed: {len(failures)} "
        f"({cache.folder})"
    )
    if failures:
        raise click.exceptions.Exit(1)


def _clean(*, everything: bool) -> None:
    """Remove graphs that wait, and compiled ones too where `everything` goes."""
    from neuron_tools.capture import extraction

    cache = _cache()
    shutil.rmtree(cache.folder / extraction.FOLDER, ignore_errors=True)
    if everything:
        cache.clear()


def _cache() -> CompileCache:
    from neuron_tools.compiler.flags import parse_flags
    from neuron_tools.neff.cache import cache_of_user

    cache = cache_of_user(folder=parse_flags("", with_environment=True).cache_directory)
    if cache is None:
        raise UsageError("The compile cache is off: name a folder in NEURON_COMPILE_CACHE_URL.")
    return cache


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run(parallel_compile, NAME, sys.argv[1:], is_whole_process=True))


if __name__ == "__main__":
    main()
