"""The `neuron-monitor` command: reports on standard output; other screens are its subcommands."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

from neuron_monitor.commands.options import host_option, pods_option, spelling_option, tree_option
from neuron_tools.command_line import CONTEXT_SETTINGS, CommandFolder, run, standard_options

COMMANDS = ("prometheus", "dashboard", "watch")


@click.group(
    cls=CommandFolder,
    package="neuron_monitor.commands",
    names=COMMANDS,
    invoke_without_command=True,
    context_settings=CONTEXT_SETTINGS,
    epilog="\b\nExample:\n  neuron-monitor | jq .neuron_runtime_data\n  neuron-monitor -c monitor.json\n"
    "  neuron-monitor prometheus --port 8000",
)
@click.option("-c", "--config-file", "--config", metavar="FILE", help="Which groups, of what, how often.")
@click.option("--period", metavar="DURATION", help="Period of all groups without a file  [default: 5s]")
@click.option("--count", type=click.IntRange(1), metavar="N", help="End after N reports.")
@click.option(
    "--extras/--no-extras", default=True, help="Without a file: our own groups too.", show_default=True
)
@click.option(
    "--sink", "sinks", multiple=True, default=("lines",), metavar="NAME", show_default=True,
    help="Where reports go: lines (standard output), cloudwatch, otlp, statsd, or what an installed package "
    "adds; may be repeated.",
)  # fmt: skip
@click.option("--verbose", type=click.IntRange(0, 4), hidden=True, help="Taken for AWS's sake; no effect.")
@spelling_option
@pods_option
@host_option
@tree_option
@click.pass_context
def neuron_monitor(context: click.Context, /, **options: Any) -> None:
    """Report on Neuron devices, real or simulated: one JSON object a line on standard output.

    Without a configuration file: all groups of all processes, every 5 seconds.
    """
    if context.invoked_subcommand is not None:
        return
    stream = import_module("neuron_monitor.commands.stream_command")
    stream.run(**options)


standard_options(neuron_monitor)


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run(neuron_monitor, "neuron-monitor", sys.argv[1:]))


if __name__ == "__main__":
    main()
