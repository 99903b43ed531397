"""A profile's tables as DuckDB views over its Parquet parts, whole parts only.

Every table of the schema becomes a view with every column of the schema, so that a query written for
one profile runs on all; what a profile lacks is empty or null. Profiles of other tools (a folder of Parquet
files with the published names) get the same views.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from neuron_tools.profile.schema import TABLES, Field, TableSchema
from neuron_tools.profile.store import frontier, layout, told_schema
from neuron_tools.profile.store.frontier import OwnCode
from neuron_tools.profile.store.remote import remote_folder, source_of

if TYPE_CHECKING:
    import duckdb


_WORDS = re.compile(r"\w+")
_LISTING = frozenset({"show", "information_schema", "sqlite_master"})
_LISTS = ("duckdb_", "pragma_", "pg_")
MOST_FREE_CURSORS = 8
_RANGE_SCHEMA = "within"
_RANGE_VARIABLES = ("range_start_ns", "range_end_ns")
_VARIABLE_RANGE = ("getvariable('range_start_ns')", "getvariable('range_end_ns')")
_TIMES = (("start_ts", "end_ts"), ("execution_start_ts", "execution_end_ts"), ("timestamp", ""))


@dataclass(frozen=True)
class StoredTable:
    """A table's whole parts: their rows, and the columns they have between them."""

    name: str
    paths: tuple[Path, ...]
    rows: int
    columns: frozenset[str]
    is_uniform: bool  # whether all parts have the same columns
    part_rows: tuple[int, ...] = ()


@dataclass(frozen=True)
class Catalog:
    """What stands in a profile directory.

    Attributes:
        tables: Tables with at least one whole part.
        missing: What cannot be read, one sentence each.
    """

    directory: Path
    tables: Mapping[str, StoredTable] = field(default_factory=dict)
    missing: tuple[str, ...] = ()


def read_catalog(directory: Path) -> Catalog:
    """Find the tables and check the end of every part. O(parts).

    Of a folder that another tool wrote, columns in other units than ours are left out, and `missing` says how
    it differs from the schema that we know.
    """
    tables: dict[str, StoredTable] = {}
    missing: list[str] = []
    for name, paths in layout.stored_tables(directory):
        stored = _stored_table(name, paths, missing)
        if stored is not None:
            tables[name] = stored
    if tables and remote_folder(directory) is None and not (directory / layout.MANIFEST_NAME).exists():
        told = told_schema.read_told_schema(directory)
        columns = {name: stored.columns for name, stored in tables.items()}
        missing += told_schema.differences(directory, told, columns)
        for name, column in told.changed_units():
            if name in tables:
                tables[name] = replace(tables[name], columns=tables[name].columns - {column})
    return Catalog(directory, tables, tuple(missing))


def _stored_table(name: str, paths: Sequence[Path], missing: list[str]) -> StoredTable | None:
    whole: list[Path] = []
    columns: list[frozenset[str]] = []
    rows: list[int] = []
    for path in paths:
        if not path.name.isprintable():
            missing.append(f"{name}: the part {path.name!a} has an odd name and was left out.")
            continue
        try:
            footer = pq.read_metadata(source_of(path))
            schema = footer.schema.to_arrow_schema()
            odd = _odd_columns(TABLES[name], schema)
        except (OSError, pa.ArrowException, UnicodeDecodeError):
            missing.append(f"{name}: the part {path.name} is damaged or cut off and was left out.")
            continue
        if odd:
            missing.append(f"{name}: {', '.join(odd)} of {path.name} has an unknown form; it was left out.")
            continue
        whole.append(path)
        columns.append(frozenset(schema.names))
        rows.append(footer.num_rows)
    if not whole:
        return None
    uniform = len(set(columns)) == 1
    return StoredTable(name, tuple(whole), sum(rows), frozenset().union(*columns), uniform, tuple(rows))


def _odd_columns(table: TableSchema, schema: pa.Schema) -> list[str]:
    """Columns that hold lists where the schema has plain values or the other way; required ones that hold
    texts or dates where it has numbers."""
    held = [(name, schema.field(name).type) for name in schema.names if name in table.by_name]
    return [
        name
        for name, kind in held
        if pa.types.is_nested(kind) != table.by_name[name].type.startswith("list")
        or (name in table.required and table.by_name[name].type != "string" and not _is_number(kind))
    ]


def _is_number(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    types = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    return pa.types.is_nested(kind) or pa.types.is_null(kind) or any(is_type(kind) for is_type in types)


def create_views(
    connection: duckdb.DuckDBPyConnection,
    catalog: Catalog,
    range_ns: tuple[int, int] | None = None,
    own_code: OwnCode | None = None,
) -> None:
    """Make one view per table of the schema, and `Frontier`.

    Args:
        range_ns: Rows of tables with times are those that lie in this range, at least in part.
        own_code: Which files are the user's own.
    """
    folder = remote_folder(catalog.directory)
    if folder is not None:
        connection.register_filesystem(folder.file_system())
    name_of = str if folder is None else folder.url
    between = None if range_ns is None else (str(range_ns[0]), str(range_ns[1]))
    for name, table in TABLES.items():
        query = _query(table, catalog.tables.get(name), name_of, between)
        connection.execute(f"CREATE OR REPLACE VIEW {quoted(name)} AS {query}")
    lines = frontier.frontier_query(own_code or frontier.own_code_of(os.environ))
    connection.execute(f"CREATE OR REPLACE VIEW {quoted(frontier.VIEW)} AS {lines}")


class NamedViews:
    """The views of a profile's tables and of a range of them, each made when the first query names it.

    A query costs as much as the tables that it names, where `create_views` costs as much as all tables. All
    ranges read the same views: a range is two variables of the cursor that asks. May be asked by several
    threads at once.

    Args:
        own_code: Which files are the user's own.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, catalog: Catalog, own_code: OwnCode | None = None
    ) -> None:
        self._connection = connection
        self._catalog = catalog
        self._own_code = own_code
        self._lock = Lock()
        self._made: set[tuple[str, str]] = set()
        self._name_of: Callable[[Path], str] = str
        folder = remote_folder(catalog.directory)
        if folder is not None:
            self._name_of = folder.url
            connection.register_filesystem(folder.file_system())
        connection.execute(f"CREATE SCHEMA {_RANGE_SCHEMA}")
        self._free: deque[tuple[tuple[int, int] | None, duckdb.DuckDBPyConnection]] = deque()
        self._is_closed = False

    def cursor(self, range_ns: tuple[int, int] | None = None) -> duckdb.DuckDBPyConnection:
        """A cursor in whose queries the tables' names are the views that `make` made.

        Args:
            range_ns: Rows of tables with times are those that lie in this range, at least in part.
        """
        cursor = self._connection.cursor()
        if range_ns is not None:
            variables = zip(_RANGE_VARIABLES, range_ns)
            cursor.execute(
                f"USE {_RANGE_SCHEMA};" + ";".join(f"SET VARIABLE {name} = {ns}" for name, ns in variables)
            )
        return cursor

    @contextmanager
    def lent(self, range_ns: tuple[int, int] | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor as `cursor` makes it for a query whose rows are taken inside, and then for the next one.

        Telling a cursor its range costs more than a small query. One whose query failed is not used again.
        """
        cursor = self._taken(range_ns) or self.cursor(range_ns)
        try:
            yield cursor
        except BaseException:
            cursor.close()
            raise
        self._give_back(range_ns, cursor)

    def close(self) -> None:
        """Close the cursors that nobody uses; those in use are closed when they come back."""
        with self._lock:
            self._is_closed = True
            free, self._free = self._free, deque()
        for _, cursor in free:
            cursor.close()

    def _taken(self, range_ns: tuple[int, int] | None) -> duckdb.DuckDBPyConnection | None:
        with self._lock:
            found = next((one for one in self._free if one[0] == range_ns), None)
            if found is not None:
                self._free.remove(found)
        return found[1] if found else None

    def _give_back(self, range_ns: tuple[int, int] | None, cursor: duckdb.DuckDBPyConnection) -> None:
        with self._lock:
            self._free.append((range_ns, cursor))
            most = 0 if self._is_closed else MOST_FREE_CURSORS
            surplus = self._free.popleft()[1] if len(self._free) > most else None
        if surplus is not None:
            surplus.close()

    def make(self, query: str, *, of_range: bool = False) -> None:
        """Make the views that a query names, however it spells them; all of them where it lists tables."""
        words = {word.lower() for word in _WORDS.findall(query)}
        names = {name for name in (*TABLES, frontier.VIEW) if name.lower() in words}
        if any(word in _LISTING or word.startswith(_LISTS) for word in words):
            names = {*TABLES, frontier.VIEW}
        if frontier.VIEW in names:
            names.update(frontier.TABLES)
        schema = _RANGE_SCHEMA if of_range else "main"
        wanted = {(schema, name) for name in names}
        if not wanted <= self._made:
            with self._lock, self._connection.cursor() as cursor:
                self._create(
                    cursor, schema, sorted(wanted - self._made, key=lambda view: view[1] == frontier.VIEW)
                )

    def _create(
        self, cursor: duckdb.DuckDBPyConnection, schema: str, views: Sequence[tuple[str, str]]
    ) -> None:
        cursor.execute(f"USE {schema}")
        between = None if schema == "main" else _VARIABLE_RANGE
        for view in views:
            cursor.execute(f"CREATE VIEW {quoted(view[1])} AS {self._query(view[1], between)}")
            self._made.add(view)

    def _query(self, name: str, between: tuple[str, str] | None) -> str:
        if name == frontier.VIEW:
            return frontier.frontier_query(self._own_code or frontier.own_code_of(os.environ))
        return _query(TABLES[name], self._catalog.tables.get(name), self._name_of, between)


def _query(
    table: TableSchema,
    stored: StoredTable | None,
    name_of: Callable[[Path], str],
    between: tuple[str, str] | None,
) -> str:
    """SQL of a table's view; `between` are SQL of the start and of the end of a range."""
    if stored is None:
        return _empty_query(table)
    condition = "" if between is None else _condition(table, between)
    return _stored_query(table, stored, name_of) + condition


def _condition(table: TableSchema, between: tuple[str, str]) -> str:
    """SQL that keeps the rows of a range; nothing for tables without times."""
    start, end = between
    for first, last in _TIMES:
        if first in table.by_name:
            if not last:
                return f" WHERE {first} < {end} AND {first} >= {start}"
            reaches = f"(coalesce({last}, {first}) > {start} OR {first} >= {start})"
            # What the row groups' own least and greatest values can answer, so that earlier ones are skipped.
            may_reach = f"({last} >= {start} OR {last} IS NULL)"
            return f" WHERE {first} < {end} AND {may_reach} AND {reaches}"
    return ""


def quoted(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """An SQL string."""
    return "'" + text.replace("'", "''") + "'"


def _empty_query(table: TableSchema) -> str:
    return f"SELECT {', '.join(_null(field) for field in table.fields)} WHERE false"


def _stored_query(table: TableSchema, stored: StoredTable, name_of: Callable[[Path], str]) -> str:
    known = [
        f"CAST({quoted(field.name)} AS {field.sql_type}) AS {quoted(field.name)}"
        if field.name in stored.columns
        else _null(field)
        for field in table.fields
    ]
    further = [quoted(name) for name in sorted(stored.columns - set(table.column_names))]
    files = ", ".join(text_literal(name_of(path)) for path in stored.paths)
    by_name = "" if stored.is_uniform else ", union_by_name=true"
    return f"SELECT {', '.join([*known, *further])} FROM read_parquet([{files}]{by_name})"


def _null(field: Field) -> str:
    return f"CAST(NULL AS {field.sql_type}) AS {quoted(field.name)}"
