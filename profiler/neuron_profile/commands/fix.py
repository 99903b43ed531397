"""`neuron-profile fix`: a finding's edit as a diff, captured again: promised, measured, values equal."""

from __future__ import annotations

from pathlib import Path

import click

from neuron_tools.command_line import command, json_option


@command(example="neuron-profile fix train.nprof\nneuron-profile fix train.nprof --finding 2 --apply")
@click.argument("profile", metavar="PROFILE")
@click.option(
    "--finding",
    "number",
    type=click.IntRange(1),
    help="Number of the finding, as `advise` lists them.  [default: the first that an edit mends]",
)
@click.option("--diff", "diff_only", is_flag=True, help="Show the edit only; run nothing.")
@click.option(
    "--apply", "write", is_flag=True, help="Write the edit where it is faster and values are equal."
)
@click.option(
    "--tree",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path(),
    metavar="FOLDER",
    help="The program's folder, which is copied.  [default: the working directory]",
)
@json_option
def fix(profile: str, number: int | None, diff_only: bool, write: bool, tree: Path, as_json: bool) -> int:
    """Derive the edit for a finding of PROFILE, and measure it.

    The program is captured again with the edit and the fixed clock, in a copy of its folder, and what it
    computes is compared. This runs the program that the profile names. Exit 1 where the edit is not faster
    or values differ.
    """
    from neuron_profile.analysis.advice.advise import advise
    from neuron_profile.fix import report
    from neuron_profile.fix.measure import measure
    from neuron_profile.fix.propose import choose
    from neuron_profile.reports.terminal import output_console
    from neuron_tools import open_profile

    console = output_console()
    with open_profile(profile) as opened:
        chosen, proposal = choose(opened, advise(opened), number)
        if not as_json:
            report.print_proposal(console, chosen, proposal)
        measured = None if diff_only else measure(opened, proposal, tree)
    if as_json:
        click.echo(report.as_json(chosen, proposal, measured))
    elif measured is not None:
        report.print_measured(console, measured)
    if measured is None:
        return 0
    if write and measured.holds:
        proposal.path.write_text(proposal.edit.text)
        click.echo(f"Wrote {proposal.path}.", err=True)
    elif write:
        click.echo("Nothing was written: the edit is not faster, or values are not equal.", err=True)
    return 0 if measured.holds else 1
