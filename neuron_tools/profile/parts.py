"""The Parquet parts of one table of one writer: windows of rows, sorted, each a row group."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neuron_tools.profile import layout
from neuron_tools.profile.columns import null_column
from neuron_tools.profile.schema import Field, TableSchema, arrow_schema

WINDOW_BYTES = 32 << 20  # bounds the memory of a window: rows = this over the table's row width
MIN_WINDOW_ROWS, MAX_WINDOW_ROWS = 1 << 14, 1 << 17
WINDOWS_PER_PART = 8
COMPRESSION = "zstd"
COMPRESSION_LEVEL = 1


class TableParts:
    """Rows of one table on their way to `<Table>/part-<process>-<n>.parquet`.

    `n` is the number of the part's first window. A window that is flushed before it is full is written
    under its number and written again, in the same place, when it is full.

    Args:
        folder: The table's folder; made with the first part.
        table: The table.
        process_idx: Number of the writer.
        first_window: Number of the first window, 0 unless parts exist.
    """

    def __init__(self, folder: Path, table: TableSchema, process_idx: int, first_window: int = 0) -> None:
        self._folder = folder
        self._table = table
        self._process_idx = process_idx
        self._window = first_window
        self._window_rows = window_rows(table)
        self._chunks: list[pa.Table] = []
        self._buffered = 0
        self._part: _OpenPart | None = None
        self._is_dirty = False

    def append(self, rows: pa.Table) -> None:
        """Add rows (columns in schema order, optional ones may be absent)."""
        self._is_dirty = True
        while rows.num_rows:
            taken = rows.slice(0, self._window_rows - self._buffered)
            self._chunks.append(taken)
            self._buffered += taken.num_rows
            rows = rows.slice(taken.num_rows)
            if self._buffered == self._window_rows:
                self._close_window()

    def flush(self) -> None:
        """Make every row readable: close the open part, write the unfinished window as a part."""
        self._close_part()
        if self._is_dirty and self._buffered:
            part = _OpenPart(self._path(), self._table)
            part.write(self._sorted_window())
            part.close()
        self._is_dirty = False

    def _close_window(self) -> None:
        if self._part is None:
            self._part = _OpenPart(self._path(), self._table)
        self._part.write(self._sorted_window())
        self._chunks, self._buffered = [], 0
        self._window += 1
        if self._part.windows == WINDOWS_PER_PART:
            self._close_part()

    def _close_part(self) -> None:
        part, self._part = self._part, None
        if part is not None:
            part.close()

    def _sorted_window(self) -> pa.Table:
        return complete(self._table, sort_rows(self._table, joined(self._table, self._chunks)))

    def _path(self) -> Path:
        return self._folder / layout.part_name(self._process_idx, self._window)


class _OpenPart:
    """A part being written under a temporary name; `close` puts it into its place."""

    def __init__(self, path: Path, table: TableSchema) -> None:
        self.windows = 0
        self._path = path
        self._temporary = path.with_name(f"{path.name}{layout.TEMPORARY_SUFFIX}")
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = pq.ParquetWriter(
            self._temporary,
            arrow_schema(table.name),
            compression=COMPRESSION,
            compression_level=COMPRESSION_LEVEL,
            write_statistics=True,
            **_encodings(table),
        )

    def write(self, rows: pa.Table) -> None:
        """Add a row group. On failure the temporary file is removed."""
        try:
            self._writer.write_table(rows, row_group_size=max(rows.num_rows, 1))
        except BaseException:
            self._discard()
            raise
        self.windows += 1

    def close(self) -> None:
        """Finish the file and rename it: readers see the whole part or none of it."""
        try:
            self._writer.close()
            os.replace(self._temporary, self._path)
        except BaseException:
            self._discard()
            raise

    def _discard(self) -> None:
        try:
            self._writer.close()
        except (OSError, pa.ArrowException):
            pass  # the first failure is the one to report
        self._temporary.unlink(missing_ok=True)


def window_rows(table: TableSchema) -> int:
    """Rows of a window: a power of two that keeps a window of the widest rows within WINDOW_BYTES."""
    widths = {"string": 4, "int32": 4, "bool": 1, "list<int64>": 16, "list<string>": 24}
    row_bytes = sum(widths.get(field.type, 8) for field in table.fields)
    rows = 1 << (WINDOW_BYTES // row_bytes).bit_length() - 1
    return min(max(rows, MIN_WINDOW_ROWS), MAX_WINDOW_ROWS)


def joined(table: TableSchema, chunks: list[pa.Table]) -> pa.Table:
    """One table of all chunks, with every column that some chunk has; dictionaries unified."""
    present = list(dict.fromkeys(name for chunk in chunks for name in chunk.column_names))
    chunks = [_with_columns(table, chunk, present) for chunk in chunks]
    return pa.concat_tables(chunks).unify_dictionaries().combine_chunks()


def complete(table: TableSchema, rows: pa.Table) -> pa.Table:
    """The rows with every column of the schema, in its order; absent ones are null."""
    arrays = [
        rows.column(field.name)
        if field.name in rows.column_names
        else null_column(table, field, rows.num_rows)
        for field in table.fields
    ]
    return pa.table(arrays, schema=arrow_schema(table.name))


def _with_columns(table: TableSchema, chunk: pa.Table, names: list[str]) -> pa.Table:
    if chunk.column_names == names:
        return chunk
    arrays = [
        chunk.column(name)
        if name in chunk.column_names
        else null_column(table, table.by_name[name], chunk.num_rows)
        for name in names
    ]
    return pa.table(arrays, names=names)


def sort_rows(table: TableSchema, rows: pa.Table) -> pa.Table:
    """Rows ordered by track and time; rows of tables without time stay as they are."""
    names = [name for name in table.sort_key if name in rows.column_names]
    if not names or not rows.num_rows:
        return rows
    keys = pa.table({name: _sort_values(rows.column(name)) for name in names})
    return rows.take(pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in names]))


def _sort_values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """What to sort by: texts as they read, not in the order in which a dictionary met them."""
    if not pa.types.is_dictionary(column.type):
        return column
    codes = column.combine_chunks()
    if isinstance(codes, pa.ChunkedArray):
        codes = codes.chunk(0)
    rank = pc.rank(codes.dictionary, sort_keys="ascending").cast(pa.int32())
    return pa.chunked_array([pc.take(rank, codes.indices)])


def _encodings(table: TableSchema) -> dict[str, Any]:
    """Dictionaries for what repeats; differences for ids and times, which grow in steps."""
    growing = [field.name for field in table.fields if field.type == "int64" and _grows(field)]
    by_dictionary = [field.name for field in table.fields if field.name not in growing]
    return {
        "use_dictionary": _leaf_paths(table, by_dictionary),
        "column_encoding": dict.fromkeys(growing, "DELTA_BINARY_PACKED"),
    }


def _grows(field: Field) -> bool:
    return field.unit == "nanoseconds" or field.name == "id" or field.name.endswith("_id")


def _leaf_paths(table: TableSchema, names: list[str]) -> list[str]:
    """Parquet's own names of columns: a list's values lie one level down."""
    return [f"{name}.list.element" if table.by_name[name].type.startswith("list") else name for name in names]


def part_rows(path: Path) -> int | None:
    """Rows of a part, from its footer; None where the part is damaged or cut off."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, pa.ArrowException):
        return None
