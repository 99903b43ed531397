"""`neuron-profile slice`: a stretch of time of a profile as a profile."""

from __future__ import annotations

from pathlib import Path

import click

from neuron_profile.time_option import DURATION
from neuron_tools.command_line import command


@command(example="neuron-profile slice train.nprof --start 1.2ms --end 3.4ms -o step.nprof")
@click.argument("profile", metavar="PROFILE")
@click.option(
    "--start", type=DURATION, default="0ns", show_default=True, help="Where to begin: 1.2ms, 300us, 5s."
)
@click.option("--end", type=DURATION, required=True, help="Where to end, from the profile's start as well.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Profile to make.")
@click.option("--force", is_flag=True, help="Replace the profile if it exists.")
def slice(profile: str, start: int, end: int, output: Path, force: bool) -> None:
    """Write a range of time of PROFILE as a profile of its own.

    Spans that reach beyond are cut at the edges; times start at 0 again.
    """
    from neuron_profile.reports.progress_bar import ProgressBar
    from neuron_tools import open_profile
    from neuron_tools.profile.export import export_slice

    with open_profile(profile) as opened, ProgressBar(f"Writing {output}") as progress:
        report = export_slice(opened, output, start, end, progress=progress, force=force)
    rows = ", ".join(f"{count:,} {table}" for table, count in report.counts.items() if count)
    click.echo(f"Wrote {output}: {rows}.", err=True)
