"""Results of analyses: their numbers, then a table for each list they hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from rich.console import Console

from neuron_profile.analysis.source_frames import SourceLine
from neuron_profile.reports.analysis_columns import (
    FRACTIONS,
    HEADINGS,
    HIDDEN_WHERE_EMPTY,
    LEADS,
    PLACES,
    SHARE_OF_TOTAL,
    SHARES_OF,
)
from neuron_profile.reports.places import place
from neuron_profile.reports.quantities import duration, percent, scaled
from neuron_profile.reports.tables import data_table

_ACRONYMS = {
    "hbm": "HBM",
    "kv": "KV",
    "sbuf": "SBUF",
    "psum": "PSUM",
    "dma": "DMA",
    "flops": "FLOPs",
    "mfu": "MFU",
}


def as_json(name: str, result: Any) -> str:
    """The result as one JSON object; times in nanoseconds."""
    rows = [asdict(row) for row in result] if isinstance(result, tuple) else asdict(result)
    return json.dumps({"analysis": name, "result": rows}, indent=2, default=str)


def print_analysis(console: Console, result: Any, limit: int) -> None:
    """Print single numbers line by line and lists as tables, each below what it tells."""
    if isinstance(result, tuple):
        _print_rows(console, result, limit, None)
        return
    total_ns = getattr(result, "total_ns", None)
    for field in fields(result):
        value = getattr(result, field.name)
        if value is None or value == {}:
            continue
        if not isinstance(value, tuple):
            console.print(f"{_heading('', field.name)}: {_number_or_numbers(field.name, value)}")
        elif value:
            console.print(f"\n{_heading('', field.name)}", style="bold")
            _print_rows(console, value, limit, total_ns)


def _print_rows(console: Console, rows: Sequence[Any], limit: int, total_ns: float | None) -> None:
    kind = type(rows[0]).__name__
    if kind in LEADS:
        console.print(LEADS[kind] + "\n", style="dim")
    shown = [_with_place(row) for row in rows[:limit]]
    names = [name for name in shown[0] if _tells_something(name, (row[name] for row in shown))]
    cells = [
        [_cell(name, row[name], _whole_ns(kind, name, row, total_ns)) for name in names] for row in shown
    ]
    numbers = [place for place, name in enumerate(names) if any(_is_number(row[name]) for row in shown)]
    console.print(data_table([_heading(kind, name) for name in names], cells, right=numbers))
    if len(rows) > limit:
        console.print(f"... and {len(rows) - limit:,} more (--limit)")


def _with_place(row: Any) -> dict[str, Any]:
    """A row's fields; file and line are one of them, `place`."""
    values = {field.name: getattr(row, field.name) for field in fields(row)}
    if "path_ns" in values:
        values[SHARE_OF_TOTAL] = values["path_ns"]
    if "file" not in values or "line" not in values:
        return values
    file, line = values.pop("file"), values.pop("line")
    at = place(SourceLine(file, line)) if file else ""
    first = ("resource", "operation")
    before = {name: values.pop(name) for name in first if name in values}
    return {**before, "place": at, **values}


def _tells_something(name: str, values: Iterable[Any]) -> bool:
    return name not in HIDDEN_WHERE_EMPTY or any(values)


def _whole_ns(kind: str, name: str, row: Mapping[str, Any], total_ns: float | None) -> float | None:
    """What a time is told as a part of."""
    if name == SHARE_OF_TOTAL:
        return total_ns
    whole = SHARES_OF.get(kind)
    return float(row[whole]) if whole and name != whole and name.endswith("_ns") else None


def _heading(kind: str, name: str) -> str:
    known = HEADINGS.get(kind, {}).get(name)
    if known is not None:
        return known
    for suffix in ("_ns", "_bytes"):
        name = name.removesuffix(suffix)
    words = [_ACRONYMS.get(word, word) for word in name.split("_")]
    return " ".join([words[0][:1].upper() + words[0][1:], *words[1:]])


def _number_or_numbers(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_cell(name, each, None)}" for key, each in value.items())
    return _cell(name, value, None)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(name: str, value: Any, whole_ns: float | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, SourceLine):
        return place(value)
    if name in PLACES and value:
        file, _, line = str(value).rpartition(":")
        return place(SourceLine(file, int(line)))
    if name == "kind":
        return str(value).replace("_", " ")
    if not _is_number(value):
        return str(value)
    if name.endswith("_ns"):
        return percent(value / whole_ns) if whole_ns else duration(value)
    return _quantity(name, value)


def _quantity(name: str, value: float) -> str:
    if name.endswith(("bandwidth", "bytes_per_second")):
        return scaled(float(value), "B/s")
    if name.endswith(("_bytes", "byte_count")):
        return scaled(float(value), "B")
    if name.endswith("_flops"):
        return scaled(float(value), "FLOP/s")
    if name == "flops":
        return scaled(float(value), "FLOP")
    if name in FRACTIONS:
        return percent(float(value))
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:,.0f}"
