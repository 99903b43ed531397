"""`neuron-profile diff`: what got slower or faster between two profiles."""

from __future__ import annotations

import click

from neuron_tools.command_line import command, json_option


@command(
    example="neuron-profile diff base.nprof new.nprof\n"
    "neuron-profile diff base.nprof new.nprof --markdown > comment.md\n"
    "neuron-profile diff gpu.pt.trace.json trn2.nprof --hourly-prices 12.29 4.80"
)
@click.argument("base", metavar="BASE")
@click.argument("new", metavar="NEW")
@json_option
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown, for a pull request.")
@click.option("--each-layer", is_flag=True, help="A row for each numbered layer, not one for all alike.")
@click.option(
    "--hourly-prices",
    metavar="BASE NEW",
    nargs=2,
    type=click.FloatRange(0, 1e9),
    help="What an hour of each device costs: tell the cost of a step.",
)
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Operations to list.")
def diff(
    base: str,
    new: str,
    as_json: bool,
    as_markdown: bool,
    each_layer: bool,
    hourly_prices: tuple[float, float] | None,
    limit: int,
) -> None:
    """Compare NEW with BASE by module and operation.

    The differences add up to that of the totals. NEW and BASE are each a profile or a trace of another tool,
    such as a torch.profiler trace of a GPU.
    """
    from neuron_profile.analysis.comparison.cost import cost_of
    from neuron_profile.analysis.comparison.difference import compare
    from neuron_profile.reports import difference_text
    from neuron_profile.reports.terminal import output_console
    from neuron_profile.trace_or_profile import open_trace_or_profile

    with open_trace_or_profile(base) as before, open_trace_or_profile(new) as after:
        difference = compare(before, after)
    cost = cost_of(difference, *hourly_prices) if hourly_prices else None
    if as_json:
        click.echo(difference_text.as_json(difference, cost))
    elif as_markdown:
        click.echo(difference_text.as_markdown(difference, limit, cost, each_layer=each_layer))
    else:
        difference_text.print_difference(output_console(), difference, limit, cost, each_layer=each_layer)
