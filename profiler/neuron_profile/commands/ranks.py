"""`neuron-profile ranks`: the ranks of a job, looked at where their profiles are."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from neuron_profile.analysis.catalogue import ANALYSES
from neuron_profile.engine_options import engine_options
from neuron_tools.command_line import command, json_option

if TYPE_CHECKING:
    from neuron_profile.analysis.ranks.spread import Engine
    from neuron_profile.reports.ranks_text import Found

_EACH = (*ANALYSES.names(), "advice")


@command(
    example="neuron-profile ranks job.nprof\n"
    "neuron-profile ranks rank*.nprof --engine processes --workers 8\n"
    "neuron-profile ranks s3://runs/rank*.nprof --engine dask --scheduler tcp://head:8786 --json\n"
    "neuron-profile ranks rank*.nprof --each idle --each advice --engine dask --scheduler tcp://head:8786\n"
    "neuron-profile ranks new/rank*.nprof --base 'old/rank*.nprof'"
)
@click.argument("profiles", metavar="PROFILE...", nargs=-1, required=True)
@click.option(
    "--each",
    "names",
    multiple=True,
    type=click.Choice(_EACH),
    help="Instead, this analysis of each profile, or its advice; may be repeated.",
)
@click.option(
    "--base",
    "base",
    multiple=True,
    metavar="PROFILE",
    help="Instead, compare each rank with the same one of these; may be repeated, or a quoted pattern.",
)
@engine_options
@click.option(
    "--limit", type=click.IntRange(1), default=30, show_default=True, help="Rows to print of each table."
)
@json_option
def ranks(
    profiles: tuple[str, ...],
    names: tuple[str, ...],
    base: tuple[str, ...],
    engine: str,
    scheduler: str | None,
    workers: int,
    limit: int,
    as_json: bool,
) -> None:
    """Compare ranks: device and idle time, waiting, operations.

    A profile may hold one rank or many. Each rank becomes a few kilobytes where it is read; no process holds
    the events of more than one. With a Dask cluster a worker that is lost loses nothing: others do its ranks.
    """
    from neuron_profile.analysis.ranks.spread import Engine
    from neuron_profile.reports import ranks_text
    from neuron_profile.reports.terminal import output_console

    if names and base:
        raise click.UsageError("--each and --base ask for different things: give one of them.")
    where = Engine(engine, workers, scheduler)
    found = _look(profiles, names, _matching(base), where)
    if as_json:
        click.echo(ranks_text.as_json(found))
    else:
        ranks_text.print_ranks(output_console(), found, limit)


def _look(profiles: Sequence[str], names: Sequence[str], base: Sequence[str], engine: Engine) -> Found:
    """What was asked for: analyses of each rank, a comparison, or the job as a whole."""
    from neuron_profile.analysis.ranks.analyses import analyse_ranks
    from neuron_profile.analysis.ranks.differences import compare_ranks
    from neuron_profile.analysis.ranks.engine import summarise_job
    from neuron_profile.reports.progress_bar import ProgressBar

    with ProgressBar("Reading ranks") as progress:
        if names:
            return analyse_ranks(profiles, names, engine, progress)
        if base:
            return compare_ranks(base, profiles, engine, progress)
        return summarise_job(
            profiles, engine.name, workers=engine.workers, scheduler=engine.scheduler, progress=progress
        )


def _matching(patterns: Sequence[str]) -> list[str]:
    """Paths that patterns stand for, each in order; one that matches nothing stands for itself."""
    return [path for pattern in patterns for path in (sorted(glob.glob(pattern)) or [pattern])]
