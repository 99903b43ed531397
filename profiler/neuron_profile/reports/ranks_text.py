"""The ranks of a job for people and as JSON: their summary, their analyses, or how they differ from a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

from rich.console import Console

from neuron_profile.analysis.ranks.analyses import ADVICE, RankAnalyses
from neuron_profile.analysis.ranks.differences import RankDifference
from neuron_profile.analysis.ranks.job import Job
from neuron_profile.reports import advice_text, analysis_text
from neuron_profile.reports.quantities import duration
from neuron_profile.reports.tables import data_table

Found: TypeAlias = "Job | Sequence[RankAnalyses] | Sequence[RankDifference]"
_COLUMNS = ("Rank", "Base", "New", "Change", "Moved most", "by")


def as_json(found: Found) -> str:
    """One JSON object; times in nanoseconds."""
    if isinstance(found, Job):
        return analysis_text.as_json("ranks", found)
    rows = [_analyses(row) if isinstance(row, RankAnalyses) else _difference(row) for row in found]
    return json.dumps({"ranks": rows}, indent=2, default=str)


def print_ranks(console: Console, found: Found, limit: int) -> None:
    """Print tables, of each profile below its name.

    Args:
        limit: Rows of each table.
    """
    if isinstance(found, Job):
        analysis_text.print_analysis(console, found, limit)
        return
    differences = [row for row in found if isinstance(row, RankDifference)]
    if differences:
        _print_differences(console, differences, limit)
    for row in found:
        if isinstance(row, RankAnalyses):
            _print_analyses(console, row, limit)


def _print_analyses(console: Console, row: RankAnalyses, limit: int) -> None:
    console.print(f"\n{row.path}", style="bold")
    for name, result in row.results.items():
        console.print(f"\n{name}", style="bold")
        if name == ADVICE:
            advice_text.print_findings(console, result)
        else:
            analysis_text.print_analysis(console, result, limit)
    for name, sentence in row.lacks.items():
        console.print(f"{name}: {sentence}", style="dim")


def _print_differences(console: Console, rows: Sequence[RankDifference], limit: int) -> None:
    """Ranks by falling change."""
    cells = []
    for row in sorted(rows, key=lambda row: (-abs(row.delta_ns), row.rank))[:limit]:
        first = row.deltas[0] if row.deltas else None
        cells.append(
            [
                str(row.rank), duration(row.base_device_ns + row.base_idle_ns),
                duration(row.new_device_ns + row.new_idle_ns), duration(row.delta_ns),
                first.key.operation if first else "", duration(first.delta_ns) if first else "",
            ]
        )  # fmt: skip
    console.print(data_table(list(_COLUMNS), cells, right=[0, 1, 2, 3, 5]))
    if len(rows) > limit:
        console.print(f"... and {len(rows) - limit:,} more (--limit)")


def _analyses(row: RankAnalyses) -> dict[str, Any]:
    return {
        "path": row.path,
        "results": {name: _plain(result) for name, result in row.results.items()},
        "lacks": dict(row.lacks),
    }


def _plain(result: Any) -> Any:
    return [asdict(part) for part in result] if isinstance(result, tuple) else asdict(result)


def _difference(row: RankDifference) -> dict[str, Any]:
    deltas = [{**asdict(delta), "delta_ns": delta.delta_ns} for delta in row.deltas]
    return {**asdict(row), "delta_ns": row.delta_ns, "deltas": deltas}
