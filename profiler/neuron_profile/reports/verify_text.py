"""Breaches of the rules of a profile, as a table or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console

from neuron_profile.reports.tables import data_table
from neuron_tools.profile.verify import Breach


def as_json(breaches: Sequence[Breach]) -> str:
    """The breaches as one JSON object."""
    rows = [asdict(breach) for breach in breaches]
    return json.dumps({"holds": not rows, "breaches": rows}, indent=2, default=str)


def print_breaches(console: Console, breaches: Sequence[Breach], rows: int) -> None:
    """Print a table of the breaches, or that there are none."""
    if not breaches:
        console.print(f"No breach in {rows:,} rows.")
        return
    columns = list(asdict(breaches[0]))
    console.print(
        data_table(columns, [[str(cell) for cell in asdict(breach).values()] for breach in breaches])
    )
