"""Options that the monitor's commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from neuron_monitor.report.spelling import DEFAULT_SPELLING, SPELLINGS
from neuron_tools.command_line import choice_option

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

tree_option: Decorator = click.option(
    "--sysfs-root",
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
