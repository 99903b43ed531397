"""The `neuron-profile` command: one subcommand per file of `commands/`, imported when it is asked for."""

from __future__ import annotations

import sys
from importlib import import_module
from keyword import iskeyword

import click

from neuron_tools.command_line import CONTEXT_SETTINGS, run, standard_options

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
    "mcp",
    "recover",
    "import",
    "merge",
    "slice",
    "show",
    "show-schema",
    "examples",
)


class CommandFolder(click.Group):
    """A group whose subcommand NAME is `neuron_profile.commands.NAME.NAME`, spelled as Python allows it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order in which a user meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the subcommand; None where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_") + ("_" if iskeyword(cmd_name) else "")
        found: click.Command = getattr(import_module(f"neuron_profile.commands.{name}"), name)
        return found


@click.group(
    cls=CommandFolder,
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
