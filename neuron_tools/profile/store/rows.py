"""Fetches single rows of a stored table by their place, reading no more than one row group."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq

from neuron_tools.profile.schema import TableSchema
from neuron_tools.profile.store.catalog import StoredTable
from neuron_tools.profile.store.damage import reading
from neuron_tools.profile.store.remote import source_of


def stored_row(table: TableSchema, stored: StoredTable | None, row: int) -> dict[str, Any]:
    """Every column of one row; columns that the parts lack are None.

    Args:
        row: Place of the row among all rows of the table's parts, in order, from 0.

    Raises:
        IndexError: The table has no such row.
        DamagedProfileError: It cannot be read.
    """
    rest = row
    parts = zip(stored.paths, stored.part_rows, strict=True) if stored is not None and row >= 0 else ()
    for path, held in parts:
        if rest >= held:
            rest -= held
            continue
        with reading(path), pq.ParquetFile(source_of(path)) as part:
            for group in range(part.num_row_groups):
                rows = part.metadata.row_group(group).num_rows
                if rest < rows:
                    values: dict[str, Any] = part.read_row_group(group).slice(rest, 1).to_pylist()[0]
                    return {name: values.pop(name, None) for name in table.column_names} | values
                rest -= rows
    raise IndexError(f"Table {table.name} has no row {row}.")
