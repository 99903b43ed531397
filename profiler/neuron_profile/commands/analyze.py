"""`neuron-profile analyze`: one analysis of a profile, as a table or as JSON."""

from __future__ import annotations

import click

from neuron_profile.analysis.catalogue import ANALYSES
from neuron_tools.command_line import choice_option, command, json_option


@command(
    example="neuron-profile analyze idle train.nprof\n"
    "neuron-profile analyze roofline train.nprof --level line --json"
)
@click.argument("analysis", metavar="ANALYSIS", type=click.Choice(ANALYSES.names()))
@click.argument("profile", metavar="PROFILE")
@choice_option(
    "--level",
    choices=["operation", "module", "line", "hlo"],
    default="operation",
    help="What a point of the roofline is.",
)
@click.option(
    "--limit", type=click.IntRange(1), default=30, show_default=True, help="Rows to print of each table."
)
@json_option
def analyze(analysis: str, profile: str, level: str, limit: int, as_json: bool) -> None:
    """Analyze idle time, roofline, memory, requests, and more.

    \b
    idle           busy and idle time of each engine, and why it was idle
    host           what the host did while the device was idle, by line and reason
    kernels        device time and kernels of an imported trace
    queue          launches of an imported trace: how many wait, and how long
    graphs         CUDA and HIP graphs of an imported trace, by the operators of their nodes
    triton         Triton kernels of an imported trace by their source
    counters       CUPTI's counters of an imported trace, by operator
    input          what each step of an imported trace waits for its data
    roofline       achieved rates against what chip and memory allow
    critical-path  what made the program take as long as it did
    memory         HBM, SBUF and PSUM: peaks, tensors, spills
    communication  collectives: sizes, bandwidths, waits, overlap
    step           a typical step of each rank: computing, exposed communication, bubble, memory
    requests       of a server: queue, prefill, decode, time to first token and per token
    expected       the range in which the chip's time is expected, of all and of each line
    """
    from neuron_profile.analysis.analyses import run_analysis
    from neuron_profile.reports import analysis_text
    from neuron_profile.reports.terminal import output_console
    from neuron_tools import open_profile

    with open_profile(profile) as opened:
        result = run_analysis(opened, analysis, level)
    if as_json:
        click.echo(analysis_text.as_json(analysis, result))
    else:
        analysis_text.print_analysis(output_console(), result, limit)
