"""Options that the monitor's commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from neuron_monitor.report.spelling import DEFAULT_SPELLING, SPELLINGS
from neuron_tools.command_line import choice_option
from neuron_tools.errors import UsageError

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _existing_folder(context: click.Context, option: click.Parameter, folder: str | None) -> str | None:
    """A folder that was asked for is there; the one that is found may come with the first program."""
    if folder and not os.path.isdir(folder):
        raise UsageError(
            f"There is no folder {folder}: name the tree of devices, which holds neuron0, neuron1, ..."
        )
    return folder


tree_option: Decorator = click.option(
    "--sysfs-root",
    callback=_existing_folder,
    metavar="DIR",
    help="Tree of devices to read instead of the driver's: of a simulated driver, or a recorded copy.",
)
host_option: Decorator = choice_option(
    "--host-metrics",
    choices=["auto", "host"],
    default="auto",
    help="auto = inside a container its own limits; host = always the whole machine's.",
)
pods_option: Decorator = click.option(
    "--kubernetes/--no-kubernetes",
    default=None,
    help="Name the pods of processes; by default where /var/log/containers is there.",
)
spelling_option: Decorator = choice_option(
    "--spelling",
    choices=SPELLINGS,
    default=DEFAULT_SPELLING,
    help="Keys as AWS's hosts print them, as AWS's guide documents them, or both, which every client reads.",
)
