"""Findings and what-if gains, for people and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.padding import Padding

from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.source_frames import SourceLine
from neuron_profile.analysis.whatif.run import Gain
from neuron_profile.reports.places import place as short_place
from neuron_profile.reports.quantities import duration, percent
from neuron_profile.reports.tables import data_table


def as_json(findings: Sequence[Finding]) -> str:
    """The findings as one JSON object; times in nanoseconds, gains as fractions."""
    rows = [{**asdict(finding), "gain": finding.gain} for finding in findings]
    return json.dumps({"findings": rows}, indent=2, default=str)


def print_findings(console: Console, findings: Sequence[Finding]) -> None:
    """Print each finding with its place, its gain and what to change."""
    if not findings:
        console.print("Nothing found that would make it faster.")
        return
    for number, finding in enumerate(findings, 1):
        console.print(f"{number}. {finding.title}", style="bold")
        console.print(Padding(_where(finding.place), (0, 0, 0, 3)))
        console.print(Padding(_gain(finding), (0, 0, 0, 3)))
        console.print(Padding(finding.change, (0, 0, 1, 3)))


def gains_as_json(gains: Sequence[Gain]) -> str:
    """What-if gains as one JSON object."""
    rows = [
        {**asdict(gain), "total_gain_ns": gain.total_gain_ns, "total_gain": gain.total_gain} for gain in gains
    ]
    return json.dumps({"gains": rows}, indent=2)


def print_gains(console: Console, gains: Sequence[Gain]) -> None:
    """Print what each change does to the device time and to the program's time."""
    columns = ["Change", "Device time", "after", "Program's time", "after", "Saved", "of the program"]
    rows = [
        [
            gain.change, duration(gain.device_ns), duration(gain.device_after_ns), duration(gain.total_ns),
            duration(gain.total_after_ns), duration(gain.total_gain_ns), percent(gain.total_gain),
        ]
        for gain in gains
    ]  # fmt: skip
    console.print(data_table(columns, rows))


def _where(place: Place) -> str:
    if not place.file:
        return str(place)
    inside = f" in {place.module}" if place.module else ""
    return f"{short_place(SourceLine(place.file, place.line))}{inside}"


def _gain(finding: Finding) -> str:
    if finding.gain_ns is None:
        return "Gain: not simulated"
    saved = f"Gain: {duration(max(0, finding.gain_ns))} of the program ({percent(finding.gain)})"
    if finding.device_gain_ns:
        saved += f", {duration(finding.device_gain_ns)} of the device time"
    return saved
