"""Reading side of the exporters: what they need of a profile, and its tables as streams of batches."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from neuron_tools.profile.export.report import ExportError

BATCH_ROWS = 1 << 16
WINDOW_ROWS = 1 << 18


def ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches, each read while the one before it is being used."""
    with ThreadPoolExecutor(1) as reader:
        upcoming = reader.submit(next, batches, None)
        while (batch := upcoming.result()) is not None:
            upcoming = reader.submit(next, batches, None)
            yield batch


class ProfileSource(Protocol):
    """Anything that answers read-only SQL with DuckDB relations, such as an opened profile."""

    def sql(self, query: str) -> Any:
        """A DuckDB relation over the profile's tables."""
        ...


class Tables:
    """The tables of a profile: which there are, their columns, and their rows in batches.

    Attributes:
        profile: The profile itself.
    """

    def __init__(self, profile: ProfileSource) -> None:
        self.profile = profile
        self._columns: dict[str, dict[str, str]] = {}
        self._counts: dict[str, int] = {}
        rows = profile.sql(
            "SELECT table_name, column_name, data_type FROM information_schema.columns "
            "ORDER BY table_name, ordinal_position"
        ).fetchall()
        for table, column, data_type in rows:
            self._columns.setdefault(table, {})[column] = data_type

    @property
    def names(self) -> tuple[str, ...]:
        """All tables, in alphabetical order."""
        return tuple(self._columns)

    def __contains__(self, table: str) -> bool:
        return table in self._columns

    def columns(self, table: str) -> dict[str, str]:
        """Column name -> DuckDB type of a table; empty where the profile lacks the table."""
        return self._columns.get(table, {})

    def has(self, table: str, column: str) -> bool:
        """Whether the table is there with that column."""
        return column in self.columns(table)

    def column_or(self, table: str, column: str, default: str) -> str:
        """SQL for a column of the row `t`, or for `default` where it is absent or null."""
        return f'coalesce(t."{column}", {default})' if self.has(table, column) else default

    def count(self, table: str) -> int:
        """Number of rows; 0 for an absent table."""
        if table not in self._columns:
            return 0
        if table not in self._counts:
            self._counts[table] = int(self.rows(f'SELECT count(*) FROM "{table}"')[0][0])
        return self._counts[table]

    def windows(self, table: str, time: str) -> list[str]:
        """SQL conditions that split a table into stretches of time of about `WINDOW_ROWS` rows each.

        Rows are sorted a window at a time, so that memory does not grow with the profile.

        Args:
            table: The table, as row `t` in the conditions.
            time: SQL for the time that orders it, over the row `t`.
        """
        parts = -(-self.count(table) // WINDOW_ROWS)
        if parts <= 1:
            return ["TRUE"]
        shares = ", ".join(str(part / parts) for part in range(1, parts))
        found = self.rows(f'SELECT approx_quantile({time}, [{shares}]) FROM "{table}" t')[0][0]
        edges = sorted({int(edge) for edge in found or ()})
        lower = ["TRUE", *(f"{time} >= {edge}" for edge in edges)]
        upper = [*(f"{time} < {edge}" for edge in edges), "TRUE"]
        return [f"({above} AND {below})" for above, below in zip(lower, upper, strict=True)]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """All rows of a small result.

        Raises:
            ExportError: As `batches`.
        """
        try:
            rows: list[tuple[Any, ...]] = self.profile.sql(query).fetchall()
        except duckdb.Error as error:
            raise ExportError(f"The profile's rows cannot be read: {str(error).splitlines()[0]}") from error
        return rows

    def records(self, query: str) -> list[dict[str, Any]]:
        """All rows of a small result, each as column -> value."""
        records: list[dict[str, Any]] = []
        for batch in self.batches(query):
            records.extend(batch.to_pylist())
        return records

    def batches(self, query: str, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """A result as a stream of batches of at most `rows` rows; end it before the next query.

        Raises:
            ExportError: A row cannot be read, or the query needs more memory than the profile allows.
        """
        try:
            yield from (batch for batch in self._reader(query, rows) if batch.num_rows)
        except (duckdb.Error, pa.ArrowException) as error:
            raise ExportError(f"The profile's rows cannot be read: {str(error).splitlines()[0]}") from error

    def _reader(self, query: str, rows: int) -> pa.RecordBatchReader:
        relation = self.profile.sql(query)
        # DuckDB renamed it; both names take the number of rows.
        reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
        return reader(rows)
