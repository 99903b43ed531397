"""The `neuron-profile` command: one subcommand per file of `commands/`, imported when it is asked for."""

from __future__ import annotations

import sys

import click

from neuron_tools.command_line import CONTEXT_SETTINGS, CommandFolder, run, standard_options

COMMANDS = (
    "capture",
    "snapshot",
    "respond",
    "view",
    "query",
    "info",
    "verify",
    "advise",
    "whatif",
    "causal",
    "analyze",
    "ranks",
    "diff",
    "check",
    "fix",
    "tune",
    "scale",
    "mcp",
    "recover",
    "import",
    "merge",
    "slice",
    "show",
    "show-schema",
    "examples",
)


@click.group(
    cls=CommandFolder,
    package="neuron_profile.commands",
    names=COMMANDS,
    context_settings=CONTEXT_SETTINGS,
    epilog="\b\nExample:\n  neuron-profile capture -- python train.py\n  neuron-profile view train.nprof",
)
def neuron_profile() -> None:
    """Profile programs on AWS Neuron devices, real or simulated."""


standard_options(neuron_profile)


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run(neuron_profile, "neuron-profile", sys.argv[1:], is_whole_process=True))


if __name__ == "__main__":
    main()
