"""`neuron-profile query`: SQL over the tables of a profile."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from neuron_tools.command_line import choice_option, command, timeout_option

FORMATS = ("table", "json", "csv", "parquet")


@command(
    example=(
        "neuron-profile query train.nprof "
        "'SELECT engine, sum(duration_ns) AS ns FROM Instruction GROUP BY engine'\n"
        "neuron-profile query train.nprof 'FROM Warning' --format json"
    )
)
@click.argument("profile", metavar="PROFILE")
@click.argument("sql", metavar="SQL")
@choice_option(
    "--format",
    "output_format",
    choices=FORMATS,
    default="table",
    help="Output format.",
)
@click.option(
    "--output-file", type=click.Path(path_type=Path), help="Write here instead of to standard output."
)
@click.option("--force", is_flag=True, help="Overwrite the output file.")
@timeout_option(300, "Stop the query after so long.")
@click.option(
    "--memory-limit", metavar="SIZE", default="1GiB", show_default=True, help="Stop it where it needs more."
)
def query(
    profile: str,
    sql: str,
    output_format: str,
    output_file: Path | None,
    force: bool,
    timeout_s: float,
    memory_limit: str,
) -> None:
    """Run read-only SQL over the tables of PROFILE.

    `neuron-profile info PROFILE` lists the tables; `DESCRIBE Instruction` lists the columns of one.
    SQL may be `-` to read it from standard input.
    """
    from neuron_profile.reports.output_file import opened_output
    from neuron_profile.reports.query_result import write_result
    from neuron_tools import open_profile

    text = sys.stdin.read() if sql == "-" else sql
    if output_format == "parquet" and output_file is None and sys.stdout.isatty():
        raise click.UsageError("Parquet is not for a terminal: name a file with --output-file.")
    with open_profile(profile, memory_limit=memory_limit, timeout_s=timeout_s) as opened:
        for sentence in opened.missing:
            click.echo(f"Warning: {sentence}", err=True)
        result = opened.query(text, timeout_s=timeout_s)
    with opened_output(output_file, force=force) as stream:
        write_result(result, output_format, stream)
