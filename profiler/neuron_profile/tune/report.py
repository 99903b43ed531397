"""What a search of a kernel's parameters found, for people and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from neuron_profile.reports.quantities import count, duration, percent, scaled
from neuron_profile.reports.tables import data_table
from neuron_profile.tune.measurement import Measurement
from neuron_profile.tune.search import Outcome


def as_json(outcome: Outcome) -> str:
    """Baseline, front and all that was tried as one JSON object; times in ns."""
    content = {
        "baseline": _row(outcome.baseline),
        "best": _row(outcome.best),
        "front": [_row(each) for each in outcome.front],
        "tried": [_row(each) for each in outcome.tried],
    }
    return json.dumps(content, indent=2)


def print_outcome(console: Console, outcome: Outcome) -> None:
    """Print the front of time against SBUF, and what was refused."""
    base, best = outcome.baseline, outcome.best
    before, after = base.time_ns or 0.0, best.time_ns or 0.0
    saved = (
        f" ({percent((before - after) / before)} less)" if after < before else ": nothing faster was found"
    )
    console.print(f"{base.candidate.function}: {duration(before)} -> {duration(after)}{saved}", style="bold")
    console.print(f"{count(len(outcome.tried), 'candidate')} simulated. Front of time against SBUF:")
    names = list(best.candidate.parameters) or list(outcome.tried[0].candidate.parameters)
    rows = [_cells(each, names) for each in outcome.front]
    rows.append(["as it stands", *_cells(base, [])[:2], *("" for _ in names)])
    shown = [["", *cells] if len(cells) < len(names) + 3 else cells for cells in rows]
    console.print(data_table(["", "Time", "SBUF of a partition", *names], shown, right=(1, 2)))
    for reason, number in Counter(each.refusal for each in outcome.tried if each.refusal).items():
        example = next(each.error for each in outcome.tried if each.refusal is reason)
        console.print(f"Refused, {reason.value}: {number}. One of them: {example}", style="dim")


def _cells(found: Measurement, names: list[str]) -> list[str]:
    values = [str(found.candidate.parameters[name]) for name in names]
    return [duration(found.time_ns or 0.0), scaled(found.sbuf_bytes, "B"), *values]


def _row(found: Measurement) -> Mapping[str, Any]:
    return {
        "parameters": dict(found.candidate.parameters),
        "time_ns": found.time_ns,
        "sbuf_bytes_per_partition": found.sbuf_bytes,
        "counters": dict(found.counters),
        "refused": found.refusal.name.lower() if found.refusal else None,
        "error": found.error,
        "difference": found.difference,
    }
