"""Rows for large tables, a block at a time: sorted, filtered and cut by the database.

What the browser sends names columns and comparisons; only known ones pass, and values go as parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

import pyarrow as pa

from neuron_profile.analysis.time.logical_cores import of_first_cores
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.store.catalog import quoted

BLOCK = 100
FIRST_CORES = "$first_cores"
REACHABLE = 10_000
"""Rows that can be scrolled to; what lies behind is reached by a filter, another order, or the CSV file."""
LONGEST_TEXT = 300  # characters of a cell that are sent
MOST_CONDITIONS = 20

Kind = Literal["text", "time", "bytes", "count", "share", "number"]
_COMPARISONS = {
    "equals": "{0} = ?", "notEqual": "{0} <> ?", "lessThan": "{0} < ?", "lessThanOrEqual": "{0} <= ?",
    "greaterThan": "{0} > ?", "greaterThanOrEqual": "{0} >= ?",
}  # fmt: skip
_TEXT_COMPARISONS = {
    "contains": "contains(lower({0}), lower(?))",
    "notContains": "NOT contains(lower({0}), lower(?))",
    "equals": "lower({0}) = lower(?)",
    "notEqual": "lower({0}) <> lower(?)",
    "startsWith": "starts_with(lower({0}), lower(?))",
    "endsWith": "suffix(lower({0}), lower(?))",
}
_NULLS = {"blank": "{0} IS NULL", "notBlank": "{0} IS NOT NULL"}


class GridRequestError(NeuronToolsError):
    """The browser asked for what the table does not have."""


@frozen
class Column:
    """A column of a grid."""

    name: str
    title: str
    kind: Kind = "text"
    width: int = 0
    is_hidden: bool = False


@frozen
class Source:
    """Where the rows of a grid come from.

    Attributes:
        query: SQL with all columns; its rows are sorted and filtered. `FIRST_CORES` in it stands for the
            condition that a row belongs to the first physical core of a logical one.
        key: Unique column of `table`, by which rows are fetched once their order is known; "" for at once.
        order: Column by which rows fall at first.
        is_grouped: Whether the rows are few and dear, so that all are kept once they are computed.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    query: str
    order: str
    key: str = ""
    is_grouped: bool = False

    def query_of(self, profile: Profile) -> str:
        """The SQL for a profile."""
        return self.query.replace(FIRST_CORES, of_first_cores(profile))

    @property
    def by_name(self) -> Mapping[str, Column]:
        """The columns by name."""
        return {column.name: column for column in self.columns}


@frozen
class Request:
    """A block of rows in an order, with conditions."""

    start: int = 0
    end: int = BLOCK
    sort: tuple[tuple[str, bool], ...] = ()  # column, whether falling
    conditions: tuple[str, ...] = ()
    parameters: tuple[Any, ...] = field(default=())

    @property
    def where(self) -> str:
        """The conditions as SQL."""
        return f" WHERE {' AND '.join(self.conditions)}" if self.conditions else ""


def read_request(source: Source, asked: Mapping[str, Any]) -> Request:
    """The request in what AG Grid sends: `startRow`, `endRow`, `sortModel`, `filterModel`.

    Raises:
        GridRequestError: It names an unknown column or comparison, or asks for too much.
    """
    start = _whole(asked.get("startRow", 0))
    end = min(_whole(asked.get("endRow", start + BLOCK)), start + 10 * BLOCK)
    sort = [
        (_known(source, entry.get("colId")), entry.get("sort") == "desc")
        for entry in asked.get("sortModel") or ()
    ]
    conditions: list[str] = []
    parameters: list[Any] = []
    for name, model in (asked.get("filterModel") or {}).items():
        condition, values = _condition(quoted(_known(source, name)), model)
        conditions.append(condition)
        parameters += values
    if len(parameters) > MOST_CONDITIONS:
        raise GridRequestError("The filter has too many conditions: remove some.")
    return Request(start, min(end, REACHABLE), tuple(sort), tuple(conditions), tuple(parameters))


def read_rows(profile: Profile, source: Source, request: Request) -> list[dict[str, Any]]:
    """The rows of a request; long texts are cut."""
    if source.key:
        return rows_of_keys(profile, source, read_keys(profile, source, request))
    columns = ", ".join(quoted(column.name) for column in source.columns)
    query = f"SELECT {columns} FROM ({source.query_of(profile)}){_ordered_block(source, request)}"
    return _records(profile.query(query, request.parameters))


def read_keys(profile: Profile, source: Source, request: Request) -> list[int]:
    """The keys of the rows of a request, in its order: what is sorted is narrow, so this is quick."""
    rows = source.query_of(profile)
    query = f"SELECT {quoted(source.key)} AS key FROM ({rows}){_ordered_block(source, request)}"
    keys: list[int] = profile.query(query, request.parameters)["key"].to_pylist()
    return keys


def rows_of_keys(profile: Profile, source: Source, keys: Sequence[int]) -> list[dict[str, Any]]:
    """The rows of these keys, in their order."""
    if not keys:
        return []
    columns = ", ".join(quoted(column.name) for column in source.columns)
    listed = ", ".join(str(int(key)) for key in keys)
    query = f"SELECT {columns} FROM ({source.query_of(profile)}) WHERE {quoted(source.key)} IN ({listed})"
    place = {key: number for number, key in enumerate(keys)}
    return sorted(_records(profile.query(query)), key=lambda row: place[row[source.key]])


def _ordered_block(source: Source, request: Request) -> str:
    """The part of a query behind its FROM."""
    limit = f"LIMIT {request.end - request.start} OFFSET {request.start}"
    return f"{request.where} ORDER BY {_order(source, request)} {limit}"


def count_rows(profile: Profile, source: Source, request: Request) -> int:
    """How many rows fulfil the conditions of a request."""
    query = f"SELECT count(*) AS rows FROM ({source.query_of(profile)}){request.where}"
    return int(profile.query(query, request.parameters)["rows"][0].as_py())


def table_rows(table: pa.Table, source: Source, request: Request) -> tuple[list[dict[str, Any]], int]:
    """The rows of a request, and how many there are in all, from a table with the source's columns."""
    found, total = _ordered(table, source, request, request.end - request.start, request.start)
    return _records(found), total


def ordered_rows(table: pa.Table, source: Source, request: Request, most: int) -> pa.Table:
    """All rows of a table with the source's columns that a request asks for, in its order, in one piece."""
    return _ordered(table, source, request, most, 0)[0]


def _ordered(
    table: pa.Table, source: Source, request: Request, most: int, offset: int
) -> tuple[pa.Table, int]:
    import duckdb

    columns = ", ".join(quoted(column.name) for column in source.columns)
    parameters = list(request.parameters) or None
    block = f"ORDER BY {_order(source, request)} LIMIT {most} OFFSET {offset}"
    with duckdb.connect(":memory:") as database:
        database.register("grouped", table)
        total = database.sql(f"SELECT count(*) FROM grouped{request.where}", params=parameters).fetchall()
        found = database.sql(f"SELECT {columns} FROM grouped{request.where} {block}", params=parameters)
        return found.to_arrow_table(), int(total[0][0])


def _order(source: Source, request: Request) -> str:
    sort = request.sort or ((source.order, True),)
    keys = [f"{quoted(name)} {'DESC' if falling else 'ASC'} NULLS LAST" for name, falling in sort]
    last = source.key or source.columns[0].name
    return ", ".join([*keys, *([] if any(name == last for name, _ in sort) else [quoted(last)])])


def _known(source: Source, name: Any) -> str:
    if not isinstance(name, str) or name not in source.by_name:
        raise GridRequestError("The table has no such column.")
    return name


def _whole(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value < 1 << 40:
        raise GridRequestError("Rows are numbered from 0.")
    return value


def _condition(column: str, model: Any) -> tuple[str, list[Any]]:
    if not isinstance(model, Mapping):
        raise GridRequestError("The filter cannot be read.")
    if "conditions" in model:
        operator = " OR " if model.get("operator") == "OR" else " AND "
        parts = [_condition(column, part) for part in model["conditions"][:MOST_CONDITIONS]]
        return f"({operator.join(text for text, _ in parts)})", [
            value for _, values in parts for value in values
        ]
    kind, value = model.get("type"), model.get("filter")
    if kind in _NULLS:
        return _NULLS[str(kind)].format(column), []
    if kind == "inRange" and _is_number(value) and _is_number(model.get("filterTo")):
        return f"{column} BETWEEN ? AND ?", [value, model["filterTo"]]
    comparisons = _TEXT_COMPARISONS if isinstance(value, str) else _COMPARISONS
    if kind not in comparisons or not (isinstance(value, str) or _is_number(value)):
        raise GridRequestError("The table has no such comparison.")
    return comparisons[str(kind)].format(column), [value]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _records(rows: pa.Table) -> list[dict[str, Any]]:
    return [{name: _sent(value) for name, value in row.items()} for row in rows.to_pylist()]


def _sent(value: Any) -> Any:
    """A value as JSON can carry it; a JavaScript number holds 53 bits."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else f"{value[: LONGEST_TEXT - 1]}…"
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if value is None or isinstance(value, (bool, int)):
        return value if value is None or abs(value) < 1 << 53 else str(value)
    return str(value)[:LONGEST_TEXT]


def parts_of_filter(asked: Any) -> dict[str, Any]:
    """A filter and an order from the address, if they have the right form; empty otherwise."""
    if not isinstance(asked, Mapping):
        return {}
    sort, model = asked.get("sortModel"), asked.get("filterModel")
    return {
        "sortModel": [entry for entry in sort if isinstance(entry, Mapping)]
        if isinstance(sort, Sequence)
        else [],
        "filterModel": dict(model) if isinstance(model, Mapping) else {},
    }
