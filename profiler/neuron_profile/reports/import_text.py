"""What an import made, told in a few lines or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neuron_tools.profile.importers import ImportReport

MOST_WARNINGS = 10
_ENDINGS = (".gz", ".json", ".trace", ".pt", ".pb", ".xplane", ".pftrace", ".perfetto-trace")


def default_name(files: Sequence[Path]) -> Path:
    """`trace.nprof` in the working directory for `some/trace.json.gz`."""
    name = files[0].name
    while any(name.endswith(ending) and name != ending for ending in _ENDINGS):
        name = next(name.removesuffix(ending) for ending in _ENDINGS if name.endswith(ending))
    return Path(f"{name or 'imported'}.nprof")


def as_text(report: ImportReport) -> str:
    """Lines for a reader."""
    rows = ", ".join(f"{count:,} {table}" for table, count in report.rows.items())
    formats = ", ".join(dict.fromkeys(report.formats.values()))
    lines = [f"Wrote {report.path} from {formats}: {rows}."]
    lines += [f"Warning: {warning}" for warning in report.warnings[:MOST_WARNINGS]]
    if len(report.warnings) > MOST_WARNINGS:
        lines.append(f"... and {len(report.warnings) - MOST_WARNINGS:,} more in the table Warning.")
    return "\n".join(lines)


def as_json(report: ImportReport) -> str:
    """One JSON object."""
    return json.dumps(
        {
            "path": str(report.path),
            "formats": report.formats,
            "rows": report.rows,
            "warnings": list(report.warnings),
        }
    )
