"""An exporter: how many rows each table has, as a table in Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import BinaryIO

from neuron_tools.profile.export.destination import new_file
from neuron_tools.profile.export.exporter import exporter
from neuron_tools.profile.export.formats import ExportFormat
from neuron_tools.profile.export.report import Progress
from neuron_tools.profile.reader import Profile


@exporter(new_file)
def export_markdown(profile: Profile, stream: BinaryIO, progress: Progress | None) -> Mapping[str, int]:
    """Write the names of the profile's tables and the number of their rows."""
    tables = profile.tables()
    rows = [f"| {name} | {count} |" for name, count in sorted(tables.items())]
    stream.write(("\n".join(["| table | rows |", "|---|---|", *rows]) + "\n").encode())
    if progress is not None:
        progress(len(rows), len(rows))
    return {"tables": len(rows)}


FORMAT = ExportFormat("Markdown", ".md", "What the profile holds, for a report.", export_markdown)
