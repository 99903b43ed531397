"""CSV: one file per table of a profile, with a header line, as spreadsheets read it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from neuron_tools.profile.export.destination import new_folder, write_batches
from neuron_tools.profile.export.formats import ExportFormat
from neuron_tools.profile.export.report import ExportReport, Progress, RowCounter
from neuron_tools.profile.export.source import ProfileSource, Tables


def export_csv(
    profile: ProfileSource,
    destination_path: str | Path,
    *,
    progress: Progress | None = None,
    force: bool = False,
) -> ExportReport:
    """Writes each table of a profile that has rows as `<folder>/<Table>.csv`.

    Null is an empty field, lists are their elements joined by spaces.

    Args:
        profile: The profile to export.
        destination_path: Folder to make.
        progress: Told (rows done, rows in all) as the export goes.
        force: Whether to replace an existing folder.

    Returns:
        The files, and the number of rows of each table.

    Raises:
        UsageError: The folder exists and `force` is False, or its parent does not exist.
        ExportError: A file could not be written.
    """
    tables = Tables(profile)
    filled = [name for name in tables.names if tables.count(name)]
    rows = RowCounter(progress, sum(tables.count(name) for name in filled))
    target = Path(destination_path)
    with new_folder(target, force=force) as folder:
        counts = {name: _write_table(tables, name, folder / f"{name}.csv", rows) for name in filled}
    return ExportReport(tuple(target / f"{name}.csv" for name in filled), counts)


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
