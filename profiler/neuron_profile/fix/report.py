"""A proposed edit and what it gave, for people and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from neuron_profile.fix.measure import Measured
from neuron_profile.fix.proposal import Proposal
from neuron_profile.fix.values import Agreement
from neuron_profile.reports.places import short_path
from neuron_profile.reports.quantities import count, duration, percent


def as_json(number: int, proposal: Proposal, measured: Measured | None) -> str:
    """The edit as a diff, and what was promised and measured, as one JSON object; times in ns."""
    finding = proposal.finding
    content: dict[str, object] = {
        "finding": number,
        "rule": finding.rule,
        "file": str(proposal.path),
        "line": finding.place.line,
        "edit": proposal.edit.title,
        "diff": proposal.diff(short_path(str(proposal.path))),
    }
    if measured is not None:
        agreement = measured.agreement
        content |= {
            "promised_ns": measured.promised_ns,
            "measured_ns": measured.gain_ns,
            "before_ns": measured.before_ns,
            "after_ns": measured.after_ns,
            "values_equal": agreement.equal,
            "values_compared": agreement.compared,
            "largest_difference": agreement.difference if agreement.difference < float("inf") else None,
            "tolerance": agreement.tolerance,
        }
    return json.dumps(content, indent=2)


def print_proposal(console: Console, number: int, proposal: Proposal) -> None:
    """Print the finding, what the edit does, and the diff."""
    finding = proposal.finding
    console.print(f"{number}. {finding.title}", style="bold")
    console.print(f"   {Path(short_path(finding.place.file))}:{finding.place.line}. {proposal.edit.title}:")
    console.print()
    console.print(proposal.diff(short_path(str(proposal.path))), soft_wrap=True)


def print_measured(console: Console, measured: Measured) -> None:
    """Print what was promised, what was measured, and whether the values are equal."""
    promised = "not simulated" if measured.promised_ns is None else duration(measured.promised_ns)
    share = percent(measured.gain_ns / measured.before_ns) if measured.before_ns else "none"
    console.print(f"Promised: {promised}")
    console.print(
        f"Measured: {_signed(measured.gain_ns)} ({share}): {duration(measured.before_ns)} -> "
        f"{duration(measured.after_ns)}"
    )
    console.print(f"Values:   {_agreement(measured.agreement)}")


def _agreement(agreement: Agreement) -> str:
    if not agreement.compared:
        return "not compared: the program keeps no numbers in its globals and prints none"
    allowed = f"{agreement.tolerance:g} is allowed"
    if agreement.equal:
        largest = f"largest difference {agreement.difference:.2g}, {allowed}"
        return f"equal ({count(agreement.compared, 'value')} compared; {largest})"
    return f"not equal: {agreement.where} differs by {agreement.difference:.2g}; {allowed}"


def _signed(nanoseconds: int) -> str:
    return duration(nanoseconds) if nanoseconds >= 0 else f"-{duration(-nanoseconds)}"
