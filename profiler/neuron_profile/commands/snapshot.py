"""`neuron-profile snapshot`: the last seconds of a running program, as a profile."""

from __future__ import annotations

from pathlib import Path

import click

from neuron_tools.command_line import command


@command(example="neuron-profile snapshot 4711\nneuron-profile snapshot 4711 --last 5s -o slow.nprof")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Folder to write; must not exist. [snapshot.nprof]",
)
@click.option("--last", metavar="TIME", help="Only the last e.g. 5s.  [all that is kept]")
@click.option("--reason", default="", help="Why; kept in the profile.")
@click.argument("process_id", metavar="PID", type=click.IntRange(min=1))
def snapshot(output: Path | None, last: str | None, reason: str, process_id: int) -> int:
    """Write the last seconds of process PID as a profile.

    The process runs on. PID is a process of a command that was started with `neuron-profile capture --last
    TIME -- COMMAND`.
    """
    from neuron_profile.launch.destination import find_destination, shown
    from neuron_profile.launch.look_back import parse_time_ns
    from neuron_tools.capture.look_back.snapshot import Snapshot, options_of_process, write_snapshot

    last_ns = None if last is None else parse_time_ns(last)
    options = options_of_process(process_id)
    directory = find_destination(output, "snapshot", Path.cwd()).absolute()
    report = write_snapshot(Snapshot(options, last_ns, reason or "asked for"), directory)
    counts = f"{report.executions} executions of {report.processes} processes"
    click.echo(f"Profile: {shown(directory)}  ({counts})")
    return 0
