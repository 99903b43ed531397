"""`neuron-profile examples`: the example programs of the documentation, to run and to change."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

import neuron_tools
from neuron_tools.command_line import command
from neuron_tools.errors import NeuronToolsError, UsageError

_PACKAGE = Path(neuron_tools.__file__).parent
# A wheel holds them inside the package (setup.py), a checkout beside it.
_PLACES = (_PACKAGE / "example_programs", _PACKAGE.parent / "examples")


@command(
    example="neuron-profile examples tutorial\nneuron-profile capture -- python tutorial/train_transformer.py"
)
@click.argument("folder", metavar="[FOLDER]", default="examples", type=click.Path(path_type=Path))
def examples(folder: Path) -> None:
    """Write the example programs to FOLDER, examples by default.

    They are those of the tutorials: training with PyTorch and JAX, NKI kernels tuned step by step, and
    programs with planted faults.
    """
    source = next((place for place in _PLACES if place.is_dir()), None)
    if source is None:
        raise NeuronToolsError("This installation has no examples: install neuron-tools again, from a wheel.")
    if folder.exists():
        raise UsageError(f"{folder} is there already: name another folder, neuron-profile examples FOLDER.")
    try:
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns("__pycache__", "*.nprof"))
    except OSError as error:
        raise NeuronToolsError(f"{folder} cannot be written ({error.strerror}).") from error
    programs = sum(1 for _ in folder.rglob("*.py"))
    click.echo(f"Wrote {programs} programs to {folder}.", err=True)
