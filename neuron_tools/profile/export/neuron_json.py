"""AWS's profile JSON: the device profile (`summary`, `instruction`, `dma`, ...) and the system profile
(`trace_events`, ...), with the keys that `neuron-profile view --output-format json` writes.

A device JSON holds one list per kind of row; all of a capture's processes and cores are in the same lists,
told apart by `subgraph` (the core) and `process_idx`. Key names are those of public captures and of the
archived profiler guides; what the published tables call differently is renamed in `neuron_json_sections`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from neuron_tools.profile.export.destination import new_file
from neuron_tools.profile.export.formats import ExportFormat
from neuron_tools.profile.export.json_text import json_objects, write_lists
from neuron_tools.profile.export.neuron_json_sections import (
    DEVICE_SECTIONS,
    SYSTEM_SECTIONS,
    Section,
    section_query,
)
from neuron_tools.profile.export.report import ExportReport, Progress, RowCounter
from neuron_tools.profile.export.source import ProfileSource, Tables


def export_neuron_json(
    profile: ProfileSource,
    destination_path: str | Path,
    *,
    progress: Progress | None = None,
    force: bool = False,
) -> ExportReport:
    """Writes device and system rows in one file: readers of either shape find their keys.

    Args:
        profile: The profile to export.
        destination_path: File to make.
        progress: Told (rows done, rows in all) as the export goes.
        force: Whether to replace an existing file.

    Returns:
        The file, and the number of elements of each list.

    Raises:
        UsageError: The file exists and `force` is False, or its folder does not exist.
        ExportError: The file could not be written.
    """
    return _export(profile, destination_path, (*DEVICE_SECTIONS, *SYSTEM_SECTIONS), progress, force=force)


def export_system_json(
    profile: ProfileSource,
    destination_path: str | Path,
    *,
    progress: Progress | None = None,
    force: bool = False,
) -> ExportReport:
    """Writes the system rows only, as `system_profile.json`; arguments as `export_neuron_json`."""
    return _export(profile, destination_path, SYSTEM_SECTIONS, progress, force=force)


def _export(
    profile: ProfileSource,
    destination_path: str | Path,
    sections: Sequence[Section],
    progress: Progress | None,
    *,
    force: bool,
) -> ExportReport:
    tables = Tables(profile)
    present = [section for section in sections if section.is_in(tables)]
    rows = RowCounter(progress, sum(tables.count(section.table) for section in present))
    path = Path(destination_path)
    with new_file(path, force=force) as stream:
        lists = (
            (key, _elements([section for section in present if section.key == key], tables, rows))
            for key in dict.fromkeys(section.key for section in present)
        )
        counts = write_lists(stream, lists)
    return ExportReport((path,), counts)


def _elements(sections: Sequence[Section], tables: Tables, rows: RowCounter) -> Iterator[pa.Array]:
    for section in sections:
        for window in tables.windows(section.table, section.time) if section.time else ["TRUE"]:
            for batch in tables.batches(section_query(section, tables, window)):
                columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                yield json_objects(columns, batch.num_rows, raw=section.raw)
                rows.advance(batch.num_rows)


FORMAT = ExportFormat("Neuron JSON", ".json", "The JSON of AWS's neuron-profile.", export_neuron_json)
