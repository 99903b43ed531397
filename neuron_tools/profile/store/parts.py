"""The Parquet parts of one table of one writer: windows of rows, sorted, each a row group."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from neuron_tools.profile.schema import TableSchema, arrow_schema, is_dictionary
from neuron_tools.profile.store import layout
from neuron_tools.profile.store.columns import nulls
from neuron_tools.profile.store.encoding import writer_options
from neuron_tools.profile.store.joined_file import JoinedFile, ParquetBytes
from neuron_tools.profile.store.window import Workspace, sorted_window
from neuron_tools.profile.store.window_pool import Chain, WindowPool

WINDOW_BYTES = 32 << 20  # bounds the memory of a window: rows = this over the table's row width
MIN_WINDOW_ROWS, MAX_WINDOW_ROWS = 1 << 14, 1 << 17
DISTINCT_TEXT_BYTES = 512  # of texts that are no codes into a dictionary, such as arguments
WINDOWS_PER_PART = 32


@dataclass(eq=False)
class TableParts:
    """Rows of one table on their way to `<Table>/part-<process>-<n>.parquet`.

    `n` is the number of the part's first window. A window that is flushed before it is full is written
    under its number and written again, in the same place, when it is full.

    Args:
        folder: The table's folder; made with the first part.
        table: The table.
        process_idx: Number of the writer.
        pool: Sorts and encodes the windows, in any order, while further rows come.
        window: Number of the window that is being filled; the first is 0 unless parts exist.
    """

    folder: Path
    table: TableSchema
    process_idx: int
    pool: WindowPool
    window: int = 0

    def __post_init__(self) -> None:
        self._chain = Chain()
        self._window_rows = window_rows(self.table)
        self._pieces: list[pa.Table] = []
        self._buffered = 0
        self._part: JoinedFile | None = None
        self._nullable: frozenset[str] = frozenset()  # columns in which there were nulls
        self._is_dirty = False

    def append(self, rows: pa.Table) -> None:
        """Add rows (columns of the schema, optional ones may be absent)."""
        self._is_dirty = True
        while rows.num_rows:
            taken = rows.slice(0, self._window_rows - self._buffered)
            self._pieces.append(taken)
            self._buffered += taken.num_rows
            rows = rows.slice(taken.num_rows)
            if self._buffered == self._window_rows:
                self._submit(self.window, is_full=True)
                self._pieces, self._buffered = [], 0
                self.window += 1

    def flush(self) -> None:
        """Begin to make every row readable: close the open part, write the unfinished window as a part.

        It is done when the pool is drained.
        """
        if not self._is_dirty:
            return
        self._is_dirty = False
        if self._buffered:
            self._submit(self.window, is_full=False)
        else:
            self.pool.submit(self._chain, lambda _: None, lambda _: self._close_part())

    def _submit(self, window: int, is_full: bool) -> None:
        pieces = self._pieces
        self._nullable |= _with_nulls(self.table, pieces)
        nullable = self._nullable

        def prepare(workspace: Workspace) -> ParquetBytes:
            return encoded(self.table, sorted_window(self.table, pieces, workspace), nullable)

        def write(rows: ParquetBytes) -> None:
            if not is_full or (self._part is not None and self._part.head != rows.head):
                self._close_part()
            self._add_to_part(window, rows)
            if not is_full:
                self._close_part()

        self.pool.submit(self._chain, prepare, write)

    def _add_to_part(self, window: int, rows: ParquetBytes) -> None:
        if self._part is None:
            path = self.folder / layout.part_name(self.process_idx, window)
            self._part = JoinedFile(path, rows)
        else:
            self._part.append(rows)
        if self._part.groups == WINDOWS_PER_PART:
            self._close_part()

    def _close_part(self) -> None:
        part, self._part = self._part, None
        if part is not None:
            part.close()


def encoded(table: TableSchema, rows: pa.Table, nullable: Collection[str]) -> ParquetBytes:
    """A window as a Parquet file of one row group.

    Args:
        nullable: Columns in which nulls may come, in these rows or in others of the part.
    """
    schema = part_schema(table, rows, nullable)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, store_schema=False, **writer_options(table, rows)) as writer:
        writer.write_table(as_written(rows, schema), row_group_size=max(rows.num_rows, 1))
    return ParquetBytes.of(sink.getvalue())


def _with_nulls(table: TableSchema, pieces: Sequence[pa.Table]) -> frozenset[str]:
    """Columns that hold nulls in any of the pieces, or that one lacks."""
    present = [set(piece.column_names) for piece in pieces]
    return frozenset(
        name
        for name in table.column_names
        if any(name not in held or piece.column(name).null_count for piece, held in zip(pieces, present))
    )


def part_schema(table: TableSchema, rows: pa.Table, nullable: Collection[str]) -> pa.Schema:
    """The Arrow schema to encode from, which is not stored: every part reads alike, texts as strings.

    Text columns without any value are plain, and columns without nulls cannot be null: both cost less.
    """
    fields = []
    for place, field in enumerate(arrow_schema(table.name)):
        is_empty = rows.column(place).null_count == rows.num_rows
        kind = pa.string() if is_empty and pa.types.is_dictionary(field.type) else field.type
        fields.append(field.with_type(kind).with_nullable(field.name in nullable or not rows.num_rows))
    return pa.schema(fields)


def as_written(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the texts of a part's schema: as dictionaries, or plain."""
    return pa.table(
        [_of_type(column, field.type) for column, field in zip(rows.columns, schema)], schema=schema
    )


def _of_type(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray | pa.Array:
    if column.type == wanted:
        return column
    return nulls(wanted, len(column)) if column.null_count == len(column) else column.cast(wanted)


def window_rows(table: TableSchema) -> int:
    """Rows of a window: a power of two that keeps a window of the widest rows within WINDOW_BYTES."""
    widths = {"string": 4, "int32": 4, "bool": 1, "list<int64>": 16, "list<string>": 24}
    texts = sum(field.type == "string" and not is_dictionary(table, field) for field in table.fields)
    row_bytes = sum(widths.get(field.type, 8) for field in table.fields) + texts * DISTINCT_TEXT_BYTES
    rows = 1 << (WINDOW_BYTES // row_bytes).bit_length() - 1
    return min(max(rows, MIN_WINDOW_ROWS), MAX_WINDOW_ROWS)


def part_rows(path: Path) -> int | None:
    """Rows of a part, from its footer; None where the part is damaged or cut off."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, pa.ArrowException):
        return None
