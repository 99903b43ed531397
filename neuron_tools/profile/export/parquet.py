"""The plain Neuron Explorer Parquet folder: one file per table, the published columns in their order.

Programs written for AWS's own Parquet output read it. Our additional tables and columns are left out unless
asked for; the profile directory itself holds everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from neuron_tools.profile.export.destination import new_folder, write_batches
from neuron_tools.profile.export.formats import ExportFormat
from neuron_tools.profile.export.report import ExportReport, Progress, RowCounter
from neuron_tools.profile.export.source import ProfileSource, Tables
from neuron_tools.profile.schema import TABLES

ROW_GROUP_ROWS = 1 << 17


def export_parquet(
    profile: ProfileSource,
    destination_path: str | Path,
    *,
    progress: Progress | None = None,
    extensions: bool = False,
    force: bool = False,
) -> ExportReport:
    """Writes each table of a profile that has rows as `<folder>/<Table>.parquet`.

    Args:
        profile: The profile to export.
        destination_path: Folder to make.
        progress: Told (rows done, rows in all) as the export goes.
        extensions: Whether to add the tables and columns that the published schema lacks.
        force: Whether to replace an existing folder.

    Returns:
        The files, and the number of rows of each table.

    Raises:
        UsageError: The folder exists and `force` is False, or its parent does not exist.
        ExportError: A file could not be written.
    """
    tables = Tables(profile)
    filled = [name for name in tables.names if tables.count(name)]
    chosen = {name: exported_columns(tables, name, extensions=extensions) for name in filled}
    chosen = {name: columns for name, columns in chosen.items() if columns}
    rows = RowCounter(progress, sum(tables.count(name) for name in chosen))
    target = Path(destination_path)
    with new_folder(target, force=force) as folder:
        counts = {
            name: _write_table(tables, name, columns, folder / f"{name}.parquet", rows)
            for name, columns in chosen.items()
        }
    return ExportReport(tuple(target / f"{name}.parquet" for name in chosen), counts)


def exported_columns(tables: Tables, name: str, *, extensions: bool) -> tuple[str, ...]:
    """Columns of a table to write, in the schema's order; empty = leave the table out."""
    schema = TABLES.get(name)
    if schema is None or (schema.is_extension and not extensions):
        return ()
    present = tables.columns(name)
    return tuple(
        field.name
        for field in schema.fields
        if field.name in present and (extensions or not field.is_extension)
    )


def _write_table(tables: Tables, name: str, columns: Sequence[str], path: Path, rows: RowCounter) -> int:
    query = f'SELECT {", ".join(columns)} FROM "{name}"'
    batches = tables.batches(query, ROW_GROUP_ROWS)
    return write_batches(batches, lambda schema: pq.ParquetWriter(path, schema, compression="zstd"), rows)


FORMAT = ExportFormat(
    "Parquet",
    "-parquet",
    "Tables of the published schema, for pandas, Spark and DuckDB.",
    export_parquet,
    True,
)
