"""The plain Neuron Explorer Parquet folder: one file per table, the published columns in their order.

Programs written for AWS's own Parquet output read it. Our additional tables and columns are left out unless
asked for; the profile directory itself holds everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow.parquet as pq

from neuron_tools.profile.export.destination import new_folder, write_batches
from neuron_tools.profile.export.exporter import exporter
from neuron_tools.profile.export.formats import ExportFormat
from neuron_tools.profile.export.report import Progress, RowCounter
from neuron_tools.profile.export.source import ProfileSource, Tables
from neuron_tools.profile.schema import TABLES

ROW_GROUP_ROWS = 1 << 17


@exporter(new_folder)
def export_parquet(
    profile: ProfileSource, folder: Path, progress: Progress | None, *, extensions: bool = False
) -> Mapping[str, int]:
    """Writes each table of a profile that has rows as `<folder>/<Table>.parquet`.

    With `extensions`, tables and columns that the published schema lacks are added.
    """
    tables = Tables(profile)
    chosen = {name: _columns(tables, name, extensions) for name in tables.names if tables.count(name)}
    rows = RowCounter(progress, sum(tables.count(name) for name, columns in chosen.items() if columns))
    return {
        name: _write_table(tables, name, columns, folder / f"{name}.parquet", rows)
        for name, columns in chosen.items()
        if columns
    }


def _columns(tables: Tables, name: str, extensions: bool) -> tuple[str, ...]:
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
