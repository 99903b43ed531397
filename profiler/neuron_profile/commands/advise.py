"""`neuron-profile advise`: what is slow, why, which line, what to change, and what it would give."""

from __future__ import annotations

from pathlib import Path

import click

from neuron_tools.command_line import command, json_option


@command(
    example=(
        "neuron-profile advise train.nprof\n"
        "neuron-profile advise train.nprof --json\n"
        "neuron-profile advise -n kernel.neff -s kernel.ntff --markdown"
    )
)
@click.argument("profile", metavar="[PROFILE]", required=False)
@click.option(
    "-n", "--neff-path", type=click.Path(path_type=Path), help="The compiled artifact of which -s tells."
)
@click.option("-s", "--session-file", type=click.Path(path_type=Path),
              help="A profile that capture -n wrote, or the session file of nki.profile.")  # fmt: skip
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown.")
@json_option
def advise(
    profile: str | None, neff_path: Path | None, session_file: Path | None, as_markdown: bool, as_json: bool
) -> None:
    """Rank what slows PROFILE's program down by simulated gain.

    For each gain the program runs again on the model of the chip without the cause.
    """
    from neuron_profile.analysis.advice.advise import find_all, what_is_lacking
    from neuron_profile.analysis.advice.context import Context
    from neuron_profile.launch.session import session_profile
    from neuron_profile.reports import advice_text
    from neuron_profile.reports.terminal import output_console
    from neuron_tools import open_profile

    if (profile is None) == (session_file is None and neff_path is None):
        raise click.UsageError("Name a PROFILE, or a session with -n FILE.neff -s FILE.ntff.")
    with session_profile(neff_path, session_file) as session, open_profile(profile or session[0]) as opened:
        context = Context(opened)
        findings, lacking = find_all(context), what_is_lacking(context)
    if as_json:
        click.echo(advice_text.as_json(findings))
    elif as_markdown:
        click.echo(advice_text.as_markdown(findings, lacking))
    else:
        advice_text.print_findings(output_console(), findings, lacking)
