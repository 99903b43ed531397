"""`neuron-profile advise`: what is slow, why, which line, what to change, and what it would give."""

from __future__ import annotations

import click

from neuron_tools.command_line import command


@command(example="neuron-profile advise train.nprof\nneuron-profile advise train.nprof --json")
@click.argument("profile", metavar="PROFILE")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def advise(profile: str, as_json: bool) -> None:
    """List what slows PROFILE's program down, the largest gain first.

    Gains are simulated: the program runs again on the model of the chip without the cause.
    """
    from neuron_profile.analysis.advice.advise import find_all, what_is_lacking
    from neuron_profile.analysis.advice.context import Context
    from neuron_profile.reports import advice_text
    from neuron_profile.reports.terminal import output_console
    from neuron_tools import open_profile

    with open_profile(profile) as opened:
        context = Context(opened)
        findings, lacking = find_all(context), what_is_lacking(context)
    if as_json:
        click.echo(advice_text.as_json(findings))
    else:
        advice_text.print_findings(output_console(), findings, lacking)
