"""Results of analyses: their numbers, then a table for each list they hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from rich.console import Console

from neuron_profile.reports.quantities import duration, scaled
from neuron_profile.reports.tables import data_table


def as_json(name: str, result: Any) -> str:
    """The result as one JSON object; times in nanoseconds."""
    rows = [asdict(row) for row in result] if isinstance(result, tuple) else asdict(result)
    return json.dumps({"analysis": name, "result": rows}, indent=2, default=str)


def print_analysis(console: Console, result: Any, limit: int) -> None:
    """Print single numbers line by line and lists as tables."""
    if isinstance(result, tuple):
        _print_rows(console, result, limit)
        return
    for field in fields(result):
        value = getattr(result, field.name)
        if isinstance(value, tuple):
            if value:
                console.print(f"\n{_title(field.name)}", style="bold")
                _print_rows(console, value, limit)
        elif isinstance(value, dict):
            console.print(
                f"{_title(field.name)}: " + ", ".join(f"{k} {_cell(field.name, v)}" for k, v in value.items())
            )
        else:
            console.print(f"{_title(field.name)}: {_cell(field.name, value)}")


def _print_rows(console: Console, rows: Sequence[Any], limit: int) -> None:
    first = rows[0]
    assert is_dataclass(first)
    names = [field.name for field in fields(first)]
    cells = [[_cell(name, getattr(row, name)) for name in names] for row in rows[:limit]]
    console.print(data_table([_title(name) for name in names], cells))
    if len(rows) > limit:
        console.print(f"... and {len(rows) - limit:,} more (--limit)")


def _title(name: str) -> str:
    for suffix in ("_ns", "_bytes"):
        name = name.removesuffix(suffix)
    return name.replace("_", " ").capitalize()


def _cell(name: str, value: Any) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if name.endswith("_ns"):
            return duration(value)
        if name.endswith(("_bytes", "byte_count")):
            return scaled(float(value), "B")
        if name.endswith(("bandwidth", "bytes_per_second")):
            return scaled(float(value), "B/s")
        if name.endswith("flops"):
            return scaled(float(value), "FLOP")
        return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"
    return str(value)
