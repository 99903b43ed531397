"""`neuron-profile merge`: profiles of several ranks or runs as one."""

from __future__ import annotations

from pathlib import Path

import click

from neuron_tools.command_line import cleaning_up_when_terminated, command, is_whole_process, json_option


@command(example="neuron-profile merge rank0.nprof rank1.nprof -o job.nprof")
@click.argument(
    "profiles",
    metavar="PROFILE...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
)
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Profile to make.")
@click.option("--force", is_flag=True, help="Replace the profile if it exists.")
@json_option
def merge(profiles: tuple[Path, ...], output: Path, force: bool, as_json: bool) -> None:
    """Join PROFILEs into one, on one clock.

    Where the clocks of two profiles cannot be related, the result says so instead of inventing an order.
    """
    from neuron_profile.reports import import_text
    from neuron_profile.reports.progress_bar import ProgressBar
    from neuron_tools.profile.importers import import_traces
    from neuron_tools.profile.lockdown.own_process import give_away_all_but

    if len(profiles) < 2:
        raise click.UsageError("Name at least two profiles to merge.")
    if is_whole_process():
        give_away_all_but([output.absolute().parent])
    with cleaning_up_when_terminated(), ProgressBar(f"Merging into {output}") as progress:
        report = import_traces(profiles, output, progress=progress, force=force)
    if as_json:
        click.echo(import_text.as_json(report))
    else:
        click.echo(import_text.as_text(report), err=True)
