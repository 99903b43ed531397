"""Checks of a budget: a table, JSON, and JUnit XML for CI systems."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from xml.etree import ElementTree

from rich.console import Console

from neuron_profile.analysis.budget.checks import Check
from neuron_profile.reports.tables import data_table


def as_json(checks: Sequence[Check]) -> str:
    """The checks as one JSON object."""
    rows = [{**asdict(check), "holds": check.holds} for check in checks]
    return json.dumps({"holds": all(check.holds for check in checks), "checks": rows}, indent=2)


def print_checks(console: Console, checks: Sequence[Check]) -> None:
    """Print the bounds that are broken, or that all are kept."""
    broken = [check for check in checks if not check.holds]
    if not broken:
        console.print(f"All {len(checks)} bounds are kept.")
        return
    rows = [
        [
            check.name,
            _measured(check),
            f"{check.relation} {_number(check.limit)} {check.unit}".rstrip(),
            check.note,
        ]
        for check in broken
    ]
    console.print(data_table(["Bound", "Measured", "Allowed", "Where"], rows))
    console.print(f"{len(broken)} of {len(checks)} bounds are broken.")


def as_junit(checks: Sequence[Check]) -> str:
    """JUnit XML: one test case per bound."""
    failures = str(sum(not check.holds for check in checks))
    suite = ElementTree.Element(
        "testsuite", name="neuron-profile check", tests=str(len(checks)), failures=failures
    )
    for check in checks:
        case = ElementTree.SubElement(suite, "testcase", classname="budget", name=check.name)
        if not check.holds:
            message = (
                f"{_measured(check)}, allowed {check.relation} {_number(check.limit)} {check.unit}".rstrip()
            )
            ElementTree.SubElement(case, "failure", message=message).text = check.note
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def _measured(check: Check) -> str:
    return (
        "not in the profile" if check.measured is None else f"{_number(check.measured)} {check.unit}".rstrip()
    )


def _number(value: float) -> str:
    return f"{value:.4g}"
