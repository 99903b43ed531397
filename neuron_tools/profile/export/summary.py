"""summary-json: `{profile_name: {metric: value}}`, the published metrics and nothing else."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from neuron_tools.profile.export.destination import new_file
from neuron_tools.profile.export.exporter import exporter
from neuron_tools.profile.export.formats import ExportFormat
from neuron_tools.profile.export.report import Progress
from neuron_tools.profile.export.source import ProfileSource, Tables

Metrics = Mapping[str, Any]


@exporter(new_file)
def export_summary(profile: ProfileSource, stream: BinaryIO, progress: Progress | None) -> Mapping[str, int]:
    """Writes the Summary table as summary-json: counts are the profiles and metrics in it."""
    metrics = summary_metrics(profile)
    stream.write((json.dumps(metrics, indent=2, ensure_ascii=False, default=str) + "\n").encode())
    if progress is not None:
        progress(len(metrics), len(metrics))
    return {"profiles": len(metrics), "metrics": sum(map(len, metrics.values()))}


def summary_metrics(profile: ProfileSource) -> dict[str, Metrics]:
    """Metrics by profile name; a profile of several rows (processes, cores) gets one entry each.

    Metrics without a value are left out, as the published tools do.
    """
    tables = Tables(profile)
    if "Summary" not in tables:
        return {}
    rows = tables.records('SELECT * FROM "Summary"')
    base = _profile_name(profile, tables)
    entries: dict[str, Metrics] = {}
    for number, row in enumerate(rows):
        name = base if len(rows) == 1 else f"{base}_{_row_label(row, number)}"
        entries[name] = {metric: value for metric, value in row.items() if _has_value(value)}
    return entries


def _profile_name(profile: ProfileSource, tables: Tables) -> str:
    """Metadata.profile_name, or the profile folder's name without its suffix."""
    if tables.has("Metadata", "profile_name"):
        names = tables.rows("SELECT profile_name FROM Metadata WHERE profile_name <> '' LIMIT 1")
        if names:
            return str(names[0][0])
    path = getattr(profile, "path", None)
    return Path(path).stem if path is not None else "profile"


def _row_label(row: Metrics, number: int) -> str:
    parts = [
        f"{column.removesuffix('_idx')}{row[column]}"
        for column in ("process_idx", "pcore_idx")
        if column in row
    ]
    return "_".join(parts) or str(number)


def _has_value(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


FORMAT = ExportFormat("Summary", "-summary.json", "The published metrics as one JSON object.", export_summary)
