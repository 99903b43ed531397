"""The `neuron-ls` command."""

from __future__ import annotations

import sys

import click

from neuron_monitor.commands.options import tree_option
from neuron_tools.command_line import choice_option, command, run


@command(example="neuron-ls\nneuron-ls --topology\nneuron-ls -j | jq '.[].neuron_processes'")
@click.option("-w", "--wide", is_flag=True, help="Longer command lines.")
@click.option("-a", "--show-all-procs", is_flag=True, help="Also processes that have no Neuron runtime.")
@click.option("-t", "--topology", is_flag=True, help="Also draw how the devices are linked.")
@click.option("-j", "--json-output", "--json", is_flag=True, help="Print JSON as AWS's neuron-ls does.")
@choice_option(
    "--output-format",
    choices=["table", "json"],
    default="table",
    help="json = the same as -j, as AWS's neuron-ls spells it from 2.34 on.",
)
@tree_option
def neuron_ls(
    wide: bool,
    show_all_procs: bool,
    topology: bool,
    json_output: bool,
    output_format: str,
    sysfs_root: str | None,
) -> None:
    """List the Neuron devices of this machine, real or simulated, and the processes that use them."""
    from neuron_monitor.listing.show import show

    as_json = json_output or output_format == "json"
    show(sysfs_root, wide=wide, with_all=show_all_procs, topology=topology, as_json=as_json)


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run(neuron_ls, "neuron-ls", sys.argv[1:]))


if __name__ == "__main__":
    main()
