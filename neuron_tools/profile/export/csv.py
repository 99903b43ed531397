"""CSV: one file per table of a profile, with a header line, as spreadsheets read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from neuron_tools.profile.export.destination import new_folder, write_batches
from neuron_tools.profile.export.exporter import exporter
from neuron_tools.profile.export.formats import ExportFormat
from neuron_tools.profile.export.report import Progress, RowCounter
from neuron_tools.profile.export.source import ProfileSource, Tables


@exporter(new_folder)
def export_csv(profile: ProfileSource, folder: Path, progress: Progress | None) -> Mapping[str, int]:
    """Writes each table of a profile that has rows as `<folder>/<Table>.csv`.

    Null is an empty field, lists are their elements joined by spaces.
    """
    tables = Tables(profile)
    filled = [name for name in tables.names if tables.count(name)]
    rows = RowCounter(progress, sum(map(tables.count, filled)))
    return {name: _write_table(tables, name, folder / f"{name}.csv", rows) for name in filled}


def _write_table(tables: Tables, name: str, path: Path, rows: RowCounter) -> int:
    batches = map(_flat, tables.batches(f'SELECT * FROM "{name}"'))
    return write_batches(batches, lambda schema: pyarrow.csv.CSVWriter(path, schema), rows)


def _flat(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch without lists and dictionaries, which CSV does not have."""
    columns: Sequence[pa.Array] = [_flat_column(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(list(columns), names=batch.schema.names)


def _flat_column(column: pa.Array) -> pa.Array:
    if pa.types.is_list(column.type):
        return pc.binary_join(column.cast(pa.list_(pa.string())), " ")
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


FORMAT = ExportFormat("CSV", "-csv", "One file per table, for spreadsheets.", export_csv, is_folder=True)
