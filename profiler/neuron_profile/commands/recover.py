"""`neuron-profile recover`: makes the profile of a capture that was cut off."""

from __future__ import annotations

from pathlib import Path

import click

from neuron_tools.command_line import command


@command(example="neuron-profile recover train.nprof")
@click.argument("profile", metavar="PROFILE", type=click.Path(path_type=Path))
def recover(profile: Path) -> None:
    """Finish PROFILE from what a killed capture recorded.

    A capture that met a full disk is finished in the same way.
    """
    from neuron_tools.capture.recovery import recover as recover_profile

    report = recover_profile(profile)
    processes = "process" if report.processes == 1 else "processes"
    end = "" if report.complete else "; the recording has no end"
    click.echo(
        f"Recovered {profile}: {report.executions:,} executions of {report.processes:,} {processes}{end}.",
        err=True,
    )
