"""`python -m benchmarks NAME`: runs one benchmark, or all of them, and prints its figures."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec

from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.figures import Figure, as_table
from neuron_tools.errors import NeuronToolsError

NAMES = (
    "capture",
    "fidelity",
    "distributed",
    "simulator",
    "compiler",
    "whole_models",
    "models",
    "jax",
    "nki",
    "profile",
    "analysis",
    "rank_traces",
    "explorer",
    "vscode",
    "monitor",
    "untrusted",
    "kill_moments",
    "lockdown",
    "faults",
)
HEADINGS = ("figure", "value", "target", "held", "peer", "peer's value", "ratio", "note")


def available_names() -> list[str]:
    """The benchmarks that this version has, in the documented order."""
    return [name for name in NAMES if find_spec(f"benchmarks.{name}") is not None]


def run(name: str, quick: bool) -> list[Figure]:
    """Runs one benchmark: its module's `run(quick)`."""
    figures: list[Figure] = import_module(f"benchmarks.{name}").run(quick)
    return figures


def print_table(name: str, figures: Sequence[Figure]) -> None:
    """Prints a benchmark's figures for people."""
    table = Table(*HEADINGS, title=name)
    for row in as_table(figures):
        table.add_row(*row)
    # A pipe has no width: the table must not be cut to 80 columns there.
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "name", choices=[*available_names(), "all"], metavar="NAME", help="one of: %(choices)s"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per benchmark")
    parser.add_argument("--quick", action="store_true", help="take less than 50 seconds")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs and prints; 1 where a target is missed or a benchmark cannot run."""
    options = parse_arguments(arguments)
    here, reference = machine.measure(), machine.reference()
    print(here.describe(reference), file=sys.stderr)
    held = True
    for name in available_names() if options.name == "all" else [options.name]:
        try:
            figures = [figure.on(here, reference) for figure in run(name, options.quick)]
        except NeuronToolsError as error:
            print(f"benchmark {name}: {error}", file=sys.stderr)
            held = False
            continue
        if options.json:
            told = {"benchmark": name, "machine": asdict(here)}
            print(json.dumps({**told, "figures": [figure.as_json() for figure in figures]}))
        else:
            print_table(name, figures)
        held = held and all(figure.holds is not False for figure in figures)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
