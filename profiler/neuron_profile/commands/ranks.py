"""`neuron-profile ranks`: the ranks of a job, summarised where their profiles are."""

from __future__ import annotations

import click

from neuron_tools.command_line import command


@command(
    example="neuron-profile ranks job.nprof\n"
    "neuron-profile ranks rank*.nprof --engine processes --workers 8\n"
    "neuron-profile ranks s3://runs/rank*.nprof --engine dask --scheduler tcp://head:8786 --json"
)
@click.argument("profiles", metavar="PROFILE...", nargs=-1, required=True)
@click.option(
    "--engine",
    type=click.Choice(["local", "processes", "dask"]),
    default="local",
    show_default=True,
    help="Where the ranks are read: one after another, in processes here, or on a Dask cluster.",
)
@click.option("--scheduler", metavar="ADDRESS", help="Of a running Dask scheduler; none: a cluster here.")
@click.option(
    "--workers", type=click.IntRange(1), default=2, show_default=True, help="Processes, without a scheduler."
)
@click.option(
    "--limit", type=click.IntRange(1), default=30, show_default=True, help="Rows to print of each table."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def ranks(
    profiles: tuple[str, ...], engine: str, scheduler: str | None, workers: int, limit: int, as_json: bool
) -> None:
    """Compare the ranks of PROFILEs: device and idle time, waiting in collectives, operations.

    A profile may hold one rank or many. Each rank becomes a few kilobytes where it is read; no process holds
    the events of more than one.
    """
    from neuron_profile.analysis.ranks.engine import summarise_job
    from neuron_profile.reports import analysis_text
    from neuron_profile.reports.progress_bar import ProgressBar
    from neuron_profile.reports.terminal import output_console

    with ProgressBar("Reading ranks") as progress:
        job = summarise_job(profiles, engine, workers=workers, scheduler=scheduler, progress=progress)
    if as_json:
        click.echo(analysis_text.as_json("ranks", job))
    else:
        analysis_text.print_analysis(output_console(), job, limit)
