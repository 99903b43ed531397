"""`neuron-profile check`: does a profile keep a budget? For CI."""

from __future__ import annotations

from pathlib import Path

import click

from neuron_tools.command_line import command, json_option


@command(example="neuron-profile check train.nprof --budget budget.toml --junit report.xml")
@click.argument("profile", metavar="PROFILE")
@click.option("--budget", required=True, metavar="FILE", help="Bounds, as TOML (docs/advice.md).")
@click.option("--junit", metavar="FILE", help="Write the result as JUnit XML too.")
@json_option
def check(profile: str, budget: str, junit: str | None, as_json: bool) -> int:
    """Compare PROFILE with a budget; exit 1 where it is exceeded.

    A table shows each bound that is broken.
    """
    from neuron_profile.analysis.budget.budget import read_budget
    from neuron_profile.analysis.budget.checks import check_budget
    from neuron_profile.reports import budget_text
    from neuron_profile.reports.terminal import output_console
    from neuron_tools import open_profile

    bounds = read_budget(Path(budget))
    with open_profile(profile) as opened:
        checks = check_budget(opened, bounds)
    if junit:
        Path(junit).write_text(budget_text.as_junit(checks))
    if as_json:
        click.echo(budget_text.as_json(checks))
    else:
        budget_text.print_checks(output_console(), checks)
    return 0 if all(bound.holds for bound in checks) else 1
