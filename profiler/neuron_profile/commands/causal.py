"""`neuron-profile causal`: where effort pays."""

from __future__ import annotations

import click

from neuron_tools.command_line import choice_option, command, json_option


@command(
    example="neuron-profile causal train.nprof\n"
    "neuron-profile causal train.nprof --level operation --limit 10 --json"
)
@click.argument("profile", metavar="PROFILE")
@choice_option(
    "--level",
    choices=["line", "operation", "module"],
    default="line",
    help="What is made faster, one after the other.",
)
@click.option("--limit", type=click.IntRange(1), default=40, show_default=True, help="How many to try.")
@json_option
def causal(profile: str, level: str, limit: int, as_json: bool) -> None:
    """Rank source lines by what making them faster would gain.

    Each line of PROFILE's program is made 10, 25 and 50 % faster in turn. Every number is a simulated run of
    the whole program, host included.
    """
    from neuron_profile.analysis.advice.context import Context
    from neuron_profile.analysis.errors import LacksDataError
    from neuron_profile.analysis.whatif.causal import find_causes
    from neuron_profile.reports import causal_text
    from neuron_profile.reports.terminal import output_console
    from neuron_tools import open_profile

    with open_profile(profile) as opened:
        found = find_causes(Context(opened), level, limit)
    if found is None:
        raise LacksDataError(f"{profile} lacks the data for this analysis: it has no programs that ran.")
    if as_json:
        click.echo(causal_text.as_json(found))
    else:
        causal_text.print_causes(output_console(), found)
