"""The `neuron-explorer` command, with the commands of AWS's tool of that name: `neuron-explorer capture ...`.

AWS replaced `neuron-profile` by `neuron-explorer` in SDK 2.30. Its commands are those of `neuron-profile`
here; all else, profiles and folders, is shown in the browser.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from neuron_tools.command_line import describe, run
from neuron_tools.errors import NeuronToolsError

NAME = "neuron-explorer"
AWS_COMMANDS = ("capture", "view", "inspect", "recommend")


def explore(arguments: Sequence[str], *, is_whole_process: bool = False) -> int:
    """Run the command of some arguments; returns its exit status."""
    from neuron_profile.launch.aws_arguments import SCHEMA_FLAG, translated

    command, *rest = [*arguments, ""]
    given = rest[:-1]
    if command == SCHEMA_FLAG:
        command, given = "view", [SCHEMA_FLAG]
    if command not in AWS_COMMANDS or (command == "view" and not given):
        from neuron_explorer.cli import neuron_explorer

        shown = arguments if command not in AWS_COMMANDS else ()
        return run(neuron_explorer, NAME, shown, is_whole_process=is_whole_process)
    from neuron_profile.cli import neuron_profile

    try:
        found = translated(command, given)
    except NeuronToolsError as error:
        message, status = describe(error)
        click.echo(f"Error: {message}", err=True)
        return status
    if found.ignored:
        click.echo(f"{NAME}: changes nothing here: {', '.join(found.ignored)}", err=True)
    return run(neuron_profile, NAME, found.arguments, is_whole_process=is_whole_process)


def main() -> None:
    """Entry point of the console script."""
    sys.exit(explore(sys.argv[1:], is_whole_process=True))


if __name__ == "__main__":
    main()
