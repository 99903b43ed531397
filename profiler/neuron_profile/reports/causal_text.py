"""A causal profile, for people and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

from rich.console import Console

from neuron_profile.analysis.source_frames import SourceLine
from neuron_profile.analysis.whatif.causal import CausalProfile, CausalRow
from neuron_profile.reports.places import place
from neuron_profile.reports.quantities import duration, percent
from neuron_profile.reports.tables import data_table


def as_json(profile: CausalProfile) -> str:
    """The causal profile as one JSON object; times in nanoseconds, parts as fractions."""
    return json.dumps(asdict(profile), indent=2)


def print_causes(console: Console, profile: CausalProfile) -> None:
    """Print what each row's speed-ups give the program."""
    if not profile.rows:
        console.print(f"No {profile.level} is known of what ran.")
        return
    speedups = profile.rows[0].speedups
    columns = [profile.level.capitalize(), "Active", *(f"{faster:.0%} faster" for faster in speedups)]
    rows = [
        [
            _what(profile.level, row), duration(row.busy_ns),
            *(_gain(gain_ns, profile.total_ns) for gain_ns in row.gains_ns),
        ]
        for row in profile.rows
    ]  # fmt: skip
    console.print(f"The program takes {duration(profile.total_ns)}. Each row made faster by itself saves:")
    console.print(data_table(columns, rows))
    if not any(gain_ns > 0 for row in profile.rows for gain_ns in row.gains_ns):
        console.print("Nothing does: the program waits for its host, which hides what the device saves.")
    if profile.left_out:
        console.print(f"{profile.left_out:,} more were not tried (--limit).")


def _what(level: str, row: CausalRow) -> str:
    if level != "line":
        return row.what
    file, _, line = row.what.rpartition(":")
    return place(SourceLine(file, int(line)))


def _gain(gain_ns: int, total_ns: int) -> str:
    return f"{duration(max(0, gain_ns))} ({percent(max(0, gain_ns) / total_ns if total_ns else 0.0)})"
