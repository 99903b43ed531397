"""Results of the user's queries: bounded in rows, in the characters of a cell, and in time."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from neuron_explorer.analyses import analysis
from neuron_explorer.grid_rows import BLOCK, Column, Kind, Request
from neuron_explorer.jobs import WatchedProfile
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

QUERY = "query"
MOST_ROWS = 10_000
TIMEOUT_S = 60.0
MOST_COLUMNS = 60
BLOCK_CHARACTERS = 50_000
"""Texts of a block of rows that are sent; longer cells are cut to keep to it."""
BLOCK_CELLS = 2_500


@frozen
class QueryResult:
    """The first rows of a result.

    Attributes:
        is_cut: Whether there are more.
    """

    table: pa.Table
    is_cut: bool

    @property
    def columns(self) -> list[Column]:
        """The columns as a grid has them, told apart by their place."""
        fields = list(self.table.schema)[:MOST_COLUMNS]
        return [Column(f"c{place}", field.name, _kind(field.type), 150) for place, field in enumerate(fields)]

    @property
    def block_rows(self) -> int:
        """Rows that are sent at once: few of a wide table."""
        return max(10, min(BLOCK, BLOCK_CELLS // max(1, len(self.columns))))


@analysis(QUERY, "Running the query")
def run_query(profile: Profile, query: str) -> QueryResult:
    """The first rows of a query.

    Raises:
        QueryError: It is no single reading statement, is wrong, or took too much time or memory.
    """
    assert isinstance(profile, WatchedProfile)
    table = profile.first_rows(query, MOST_ROWS + 1, TIMEOUT_S)
    return QueryResult(table.slice(0, MOST_ROWS), table.num_rows > MOST_ROWS)


def result_rows(
    result: QueryResult, request: Request, sort: tuple[tuple[int, bool], ...]
) -> list[dict[str, Any]]:
    """A block of rows in an order; `sort` names columns by place."""
    table = result.table
    if sort:
        table = table.rename_columns([f"c{place}" for place in range(table.num_columns)])
        keys = [(f"c{place}", "descending" if falling else "ascending") for place, falling in sort]
        table = table.take(pc.sort_indices(table, sort_keys=keys))
    block = table.slice(request.start, request.end - request.start)
    columns = [block.column(place).to_pylist() for place in range(min(block.num_columns, MOST_COLUMNS))]
    longest = max(12, BLOCK_CHARACTERS // max(1, len(columns) * block.num_rows))
    return [{f"c{place}": _sent(value, longest) for place, value in enumerate(row)} for row in zip(*columns)]


def _kind(type_: pa.DataType) -> Kind:
    if pa.types.is_integer(type_):
        return "count"
    return "number" if pa.types.is_floating(type_) or pa.types.is_decimal(type_) else "text"


def _sent(value: Any, longest: int) -> Any:
    """A value as JSON can carry it; a JavaScript number holds 53 bits."""
    if isinstance(value, bool) or value is None:
        return value if value is None else str(value).lower()
    if isinstance(value, int):
        return value if abs(value) < 1 << 53 else str(value)
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    text = str(value)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
