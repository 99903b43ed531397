"""`neuron-profile info`: what a profile is and what stands in it."""

from __future__ import annotations

import click

from neuron_tools.command_line import command, json_option


@command(example="neuron-profile info train.nprof\nneuron-profile info train.nprof --json")
@click.argument("profile", metavar="PROFILE")
@json_option
def info(profile: str, as_json: bool) -> None:
    """Describe PROFILE: command, target, processes, tables.

    It also says whether the profile is complete.
    """
    from neuron_profile.analysis.identity import identify
    from neuron_profile.reports import info_text
    from neuron_profile.reports.terminal import output_console
    from neuron_tools import open_profile

    with open_profile(profile) as opened:
        identity, tables = identify(opened), opened.tables()
    if as_json:
        click.echo(info_text.as_json(identity, tables))
    else:
        info_text.print_info(output_console(), identity, tables)
