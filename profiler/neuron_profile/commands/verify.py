"""`neuron-profile verify`: are the rules kept that hold for every profile?"""

from __future__ import annotations

import click

from neuron_tools.command_line import command, json_option


@command(example="neuron-profile verify train.nprof")
@click.argument("profile", metavar="PROFILE")
@json_option
def verify(profile: str, as_json: bool) -> int:
    """Check that PROFILE is consistent; exit 1 where it is not.

    The rules hold for every profile, whoever wrote it.
    """
    from neuron_profile.reports import verify_text
    from neuron_profile.reports.terminal import output_console
    from neuron_tools import open_profile
    from neuron_tools.profile.verify import verify as find_breaches

    with open_profile(profile) as opened:
        breaches, rows = find_breaches(opened), sum(opened.tables().values())
    if as_json:
        click.echo(verify_text.as_json(breaches))
    else:
        verify_text.print_breaches(output_console(), breaches, rows)
    return 1 if breaches else 0
