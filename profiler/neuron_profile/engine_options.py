"""Options of commands that spread their work over processes or a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from neuron_tools.command_line import choice_option

_OPTIONS = (
    choice_option(
        "--engine",
        choices=["local", "processes", "dask"],
        default="local",
        help="Where the ranks are read: one after another, in processes here, or on a Dask cluster.",
    ),
    click.option("--scheduler", metavar="ADDRESS", help="Of a running Dask scheduler; none: a cluster here."),
    click.option(
        "--workers",
        type=click.IntRange(1),
        default=2,
        show_default=True,
        help="Processes, without a scheduler.",
    ),
)


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--engine`, `--scheduler` and `--workers`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
