"""Findings as a person reads them."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.reports.advice_text import print_findings


def printed(*findings, lacking=""):
    console = Console(file=io.StringIO(), width=200)
    print_findings(console, findings, lacking)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def finding(title, gain_ns, device_gain_ns=0, **more):
    return Finding(
        "rule", title, "Do less.", Place("train.py", 7), gain_ns, device_gain_ns, total_ns=1_000_000, **more
    )


def test_a_finding_tells_place_gain_and_change():
    assert printed(finding("Slow", 250_000, 300_000)) == [
        "1. Slow",
        "   train.py:7",
        "   Gain: 250 µs of the program (25.0 %), 300 µs of the device time",
        "   Do less.",
        "",
    ]


@pytest.mark.parametrize(
    ("found", "gain"),
    [
        (finding("", None), "Gain: not simulated"),
        (
            finding("", 0, 5000),
            "Gain: 5.00 µs of the device time, none of the program, which waits for something else",
        ),
        (
            finding("", 449_000, 449_000, device_ns=880_000),  # a short step, of which much is the launch
            "Gain: 449 µs of the program (44.9 %), 449 µs of the device time (51.0 %)",
        ),
        (finding("", 1000, gain_of="what it compiles"), "Gain: 1.00 µs of what it compiles (0.1 %)"),
    ],
)
def test_what_a_gain_is_a_part_of(found, gain):
    assert printed(found)[2].strip() == gain


def test_what_gains_hardly_anything_takes_a_line():
    lines = printed(finding("Large", 250_000, 300_000), finding("Small", 10, 20))
    assert lines[-2:] == ["Found too, with hardly any gain:", "   Small (train.py:7)"]
    assert not any(line.startswith("2.") for line in lines)


def test_what_the_profile_lacks_is_told():
    assert printed(lacking="No programs.") == ["Nothing found that would make it faster.", "No programs."]
