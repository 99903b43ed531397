"""AWS's profile JSON: the device profile (`summary`, `instruction`, `dma`, ...) and the system profile
(`trace_events`, ...), with the keys that `neuron-profile view --output-format json` writes.

A device JSON holds one list per kind of row; all of a capture's processes and cores are in the same lists,
told apart by `subgraph` (the core) and `process_idx`. Key names are those of public captures and of the
archived profiler guides; what the published tables call differently is renamed in `neuron_json_sections`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

import pyarrow as pa

from neuron_tools.profile.export.destination import new_file
from neuron_tools.profile.export.exporter import exporter
from neuron_tools.profile.export.formats import ExportFormat
from neuron_tools.profile.export.json_text import json_objects, write_lists
from neuron_tools.profile.export.neuron_json_sections import (
    DEVICE_SECTIONS,
    SYSTEM_SECTIONS,
    Section,
    section_query,
)
from neuron_tools.profile.export.report import Progress, RowCounter
from neuron_tools.profile.export.source import ProfileSource, Tables


@exporter(new_file)
def export_neuron_json(
    profile: ProfileSource, stream: BinaryIO, progress: Progress | None
) -> Mapping[str, int]:
    """Writes device and system rows in one file: readers of either shape find their keys."""
    return _write(profile, stream, progress, (*DEVICE_SECTIONS, *SYSTEM_SECTIONS))


@exporter(new_file)
def export_system_json(
    profile: ProfileSource, stream: BinaryIO, progress: Progress | None
) -> Mapping[str, int]:
    """Writes the system rows only, as `system_profile.json`."""
    return _write(profile, stream, progress, SYSTEM_SECTIONS)


def _write(
    profile: ProfileSource, stream: BinaryIO, progress: Progress | None, sections: Sequence[Section]
) -> Mapping[str, int]:
    tables = Tables(profile)
    present = [section for section in sections if section.is_in(tables)]
    rows = RowCounter(progress, sum(tables.count(section.table) for section in present))
    lists = (
        (key, _elements([section for section in present if section.key == key], tables, rows))
        for key in dict.fromkeys(section.key for section in present)
    )
    return write_lists(stream, lists)


def _elements(sections: Sequence[Section], tables: Tables, rows: RowCounter) -> Iterator[pa.Array]:
    for section in sections:
        for window in tables.windows(section.table, section.time) if section.time else ["TRUE"]:
            for batch in tables.batches(section_query(section, tables, window)):
                columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                yield json_objects(columns, batch.num_rows, raw=section.raw)
                rows.advance(batch.num_rows)


FORMAT = ExportFormat("Neuron JSON", ".json", "The JSON of AWS's neuron-profile.", export_neuron_json)
