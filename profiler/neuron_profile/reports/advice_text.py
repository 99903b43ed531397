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

SMALL, SMALL_OF_LARGEST = 0.001, 0.02  # of the program's time; of the largest gain of device time

HIDDEN = "The program's time stays as it is: it waits for its host, which hides what the device saves."


def as_json(findings: Sequence[Finding]) -> str:
    """The findings as one JSON object; times in nanoseconds, gains as fractions."""
    rows = [
        {**asdict(finding), "gain": finding.gain, "device_gain": finding.device_gain} for finding in findings
    ]
    return json.dumps({"findings": rows}, indent=2, default=str)


def print_findings(console: Console, findings: Sequence[Finding], lacking: str = "") -> None:
    """Print each finding with place, gain and what to change; those of hardly any gain in a line each.

    Args:
        lacking: What the profile lacks that rules look at, as a sentence.
    """
    if not findings:
        console.print("Nothing found that would make it faster.")
    small = [finding for finding in findings if _is_small(finding, findings)]
    for number, finding in enumerate((each for each in findings if each not in small), 1):
        console.print(f"{number}. {finding.title}", style="bold")
        console.print(Padding(_where(finding), (0, 0, 0, 3)))
        console.print(Padding(_gain(finding), (0, 0, 0, 3)))
        console.print(Padding(change_text(finding), (0, 0, 1, 3)))
    if small:
        console.print("Found too, with hardly any gain:", style="bold")
    for finding in small:
        console.print(Padding(f"{finding.title} ({_where(finding)})", (0, 0, 0, 3)))
    if lacking:
        console.print(lacking, style="dim")


def as_markdown(findings: Sequence[Finding], lacking: str = "") -> str:
    """The findings as a page of Markdown, the largest gain first."""
    parts = ["# What to change"]
    for number, finding in enumerate(findings, 1):
        parts += [f"## {number}. {finding.title}", f"{_where(finding)}. {_gain(finding)}"]
        parts.append(change_text(finding))
    if not findings:
        parts.append("Nothing found that would make it faster.")
    return "\n\n".join([*parts, lacking] if lacking else parts)


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
    console.print(data_table(columns, rows, right=range(1, len(columns))))
    if any(gain.device_gain_ns > 0 for gain in gains) and all(gain.total_gain_ns <= 0 for gain in gains):
        console.print(HIDDEN, style="dim")


def change_text(finding: Finding) -> str:
    """What to change, and whether the program can."""
    return finding.change if finding.within_reach else f"The compiler decides this. {finding.change}"


def _where(finding: Finding) -> str:
    place, library = finding.place, finding.library_place
    if not place.file:
        return str(place)
    inside = f" in {place.module}" if place.module else ""
    exact = f", inside {_short(library)}" if library.file else ""
    return f"{_short(place)}{inside}{exact}"


def _short(place: Place) -> str:
    return short_place(SourceLine(place.file, place.line))


def _is_small(finding: Finding, findings: Sequence[Finding]) -> bool:
    """Whether it saves next to nothing of the program, and of the device time less than others do."""
    if finding.gain_ns is None or finding.gain >= SMALL:
        return False
    most_ns = max(other.device_gain_ns or 0 for other in findings)
    return (finding.device_gain_ns or 0) <= SMALL_OF_LARGEST * most_ns


def _gain(finding: Finding) -> str:
    if finding.gain_ns is None:
        return "Gain: not simulated"
    device = f"{duration(finding.device_gain_ns)} of the device time" if finding.device_gain_ns else ""
    if device and finding.device_ns:
        device += f" ({percent(finding.device_gain)})"
    if finding.gain_ns <= 0 and device:
        return f"Gain: {device}, none of the program, which waits for something else"
    saved = f"Gain: {duration(max(0, finding.gain_ns))} of {finding.gain_of} ({percent(finding.gain)})"
    return f"{saved}, {device}" if device else saved
