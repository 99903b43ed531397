"""Reading side of the exporters: what they need of a profile, and its tables as streams of batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa

BATCH_ROWS = 1 << 16


class ProfileSource(Protocol):
    """Anything that answers read-only SQL with DuckDB relations, such as an opened profile."""

    def sql(self, query: str) -> Any:
        """A DuckDB relation over the profile's tables."""
        ...


class Tables:
    """The tables of a profile: which there are, their columns, and their rows in batches."""

    def __init__(self, profile: ProfileSource) -> None:
        self._profile = profile
        self._columns: dict[str, dict[str, str]] = {}
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

    def column_or(self, table: str, column: str, default: str, *, alias: str = "t") -> str:
        """SQL for a column, or for `default` where it is absent or null."""
        return f'coalesce({alias}."{column}", {default})' if self.has(table, column) else default

    def count(self, table: str) -> int:
        """Number of rows; 0 for an absent table."""
        if table not in self:
            return 0
        return int(self._profile.sql(f'SELECT count(*) FROM "{table}"').fetchall()[0][0])

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """All rows of a small result."""
        rows: list[tuple[Any, ...]] = self._profile.sql(query).fetchall()
        return rows

    def records(self, query: str) -> list[dict[str, Any]]:
        """All rows of a small result, each as column -> value."""
        records: list[dict[str, Any]] = []
        for batch in self.batches(query):
            records.extend(batch.to_pylist())
        return records

    def batches(self, query: str, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """A result as a stream of batches of at most `rows` rows; end it before the next query."""
        yield from (batch for batch in self._reader(query, rows) if batch.num_rows)

    def schema(self, query: str) -> pa.Schema:
        """The columns that a query yields."""
        return self._reader(f"SELECT * FROM ({query}) LIMIT 0", BATCH_ROWS).schema

    def _reader(self, query: str, rows: int) -> pa.RecordBatchReader:
        relation = self._profile.sql(query)
        # DuckDB renamed it; both names take the number of rows.
        reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
        return reader(rows)
