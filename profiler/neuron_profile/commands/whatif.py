"""`neuron-profile whatif`: simulates a profile's programs again with something changed."""

from __future__ import annotations

import click

from neuron_tools.command_line import command, json_option


@command(
    example="neuron-profile whatif train.nprof --set dma_latency=0 --set op:softmax=0\n"
    "neuron-profile whatif train.nprof --set hbm_bandwidth=2x --each"
)
@click.argument("profile", metavar="PROFILE")
@click.option(
    "--set",
    "changes",
    multiple=True,
    required=True,
    metavar="CHANGE",
    help="FIGURE=VALUE (2x: a factor), op|module|line|engine|opcode|dma|spill:WHAT=FACTOR, or dtype=bf16. "
    "Repeatable.",
)
@click.option("--each", is_flag=True, help="Each change by itself too, not only all together.")
@json_option
def whatif(profile: str, changes: tuple[str, ...], each: bool, as_json: bool) -> None:
    """Simulate how long PROFILE's program takes with CHANGEs."""
    from neuron_profile.analysis.whatif.change import combined, parse_change
    from neuron_profile.analysis.whatif.run import WhatIf
    from neuron_profile.reports import advice_text
    from neuron_profile.reports.terminal import output_console
    from neuron_tools import open_profile

    parsed = [parse_change(text) for text in changes]
    wanted = [*(parsed if each and len(parsed) > 1 else ()), combined(parsed)]
    with open_profile(profile) as opened:
        runs = WhatIf(opened)
        gains = [runs.gain(change) for change in wanted]
        idle = [change.text for change in parsed if not runs.changes_anything(change)]
    for text in idle:
        click.echo(f"Warning: {text} changes nothing: nothing of that name ran.", err=True)
    if as_json:
        click.echo(advice_text.gains_as_json(gains))
    else:
        advice_text.print_gains(output_console(), gains)
