"""An exporter: how many rows each table has, as a table in Markdown."""

from __future__ import annotations

from pathlib import Path

from neuron_tools.profile.export.destination import new_file
from neuron_tools.profile.export.formats import ExportFormat
from neuron_tools.profile.export.report import ExportReport, Progress
from neuron_tools.profile.reader import Profile


def export_markdown(
    profile: Profile, destination_path: Path, *, progress: Progress | None = None, force: bool = False
) -> ExportReport:
    """Write the names of the profile's tables and the number of their rows."""
    tables = profile.tables()
    rows = [f"| {name} | {count} |" for name, count in sorted(tables.items())]
    with new_file(destination_path, force=force) as stream:
        stream.write(("\n".join(["| table | rows |", "|---|---|", *rows]) + "\n").encode())
    if progress is not None:
        progress(len(rows), len(rows))
    return ExportReport((destination_path,), {"tables": len(rows)})


FORMAT = ExportFormat("Markdown", ".md", "What the profile holds, for a report.", export_markdown)
