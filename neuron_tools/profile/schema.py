"""The tables of a profile: names, types and units of the published schema 7.4.0, and what we add to it.

The facts stand in two data files beside this module: `schema_7_4_0.json` (the published tables) and
`extensions.json` (our columns and tables). Everything that writes, reads or checks a profile asks here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = "7.4.0"
_FOLDER = Path(__file__).parent

# Texts that differ in almost every row: a dictionary of them would be as long as the column.
_DISTINCT_TEXTS = frozenset(
    {
        "time_intervals",
        "children_names",
        "children_ids",
        "message",
        "text",
        "sha256",
        "extra_attributes_json",
        "arguments_json",
    }
)
# Tables whose texts are each written once; the look-ups that other tables point to, and the schema itself.
_LOOK_UP_TABLES = frozenset(
    {"StackFrame", "StackFrameFileLocation", "StackFrameFileName", "StackFrameFunctionName", "SourceFile"}
)
_SQL_TYPES = {
    "int64": "BIGINT",
    "int32": "INTEGER",
    "float64": "DOUBLE",
    "bool": "BOOLEAN",
    "string": "VARCHAR",
    "list<int64>": "BIGINT[]",
    "list<string>": "VARCHAR[]",
}


class UnknownTableError(NeuronToolsError):
    """A table was named that the schema does not have."""


@frozen
class Field:
    """One column.

    Attributes:
        type: "int64", "int32", "float64", "bool", "string", "list<int64>" or "list<string>".
        unit: As published ("nanoseconds", "bytes", "percent" for fractions 0-1, ...); None without unit.
        enum: Name of the enumeration that a text comes from; None for free text.
        is_extension: Whether the published schema lacks it.
    """

    name: str
    type: str
    unit: str | None = None
    required: bool = False
    enum: str | None = None
    description: str = ""
    is_extension: bool = False

    @property
    def sql_type(self) -> str:
        """The DuckDB type."""
        return _SQL_TYPES[self.type]


@dataclass(frozen=True)
class TableSchema:
    """One table: its columns in order, and what its rows are."""

    name: str
    description: str
    fields: tuple[Field, ...]
    is_extension: bool = False

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """Names of all columns, in order."""
        return tuple(field.name for field in self.fields)

    @cached_property
    def by_name(self) -> Mapping[str, Field]:
        """Columns by name."""
        return MappingProxyType({field.name: field for field in self.fields})

    @cached_property
    def required(self) -> tuple[str, ...]:
        """Names of the columns that are never null."""
        return tuple(field.name for field in self.fields if field.required)

    @cached_property
    def sort_key(self) -> tuple[str, ...]:
        """Columns that order the rows of a row group: the track, then time, then the row's number.

        Rows of one track lie together, so that a range of one track touches few pages.
        """
        track = ("process_idx", "pcore_idx", "engine", "queue_name", "thread_idx", "engine_idx", "track_idx")
        time = ("start_ts", "timestamp")
        if not any(name in self.by_name for name in time):
            return ()
        names = (*track, *time, "id")
        return tuple(name for name in names if name in self.by_name)


@cache
def _load() -> tuple[dict[str, TableSchema], dict[str, tuple[str, ...]]]:
    published = json.loads((_FOLDER / "schema_7_4_0.json").read_text("utf-8"))
    extensions = json.loads((_FOLDER / "extensions.json").read_text("utf-8"))
    enums = {
        name: tuple(values) for part in (published, extensions) for name, values in part["enums"].items()
    }
    tables = {}
    for name, table in published["tables"].items():
        added = extensions["columns"].get(name, [])
        tables[name] = TableSchema(name, table["description"], _fields(table["fields"], added))
    for name, table in extensions["tables"].items():
        tables[name] = TableSchema(name, table["description"], _fields([], table["fields"]), True)
    return tables, enums


def _fields(published: list[dict[str, Any]], added: list[dict[str, Any]]) -> tuple[Field, ...]:
    return (*(Field(**row) for row in published), *(Field(**row, is_extension=True) for row in added))


TABLES: Mapping[str, TableSchema] = MappingProxyType(_load()[0])
"""All tables by name: the published ones first, then our own."""

ENUMS: Mapping[str, tuple[str, ...]] = MappingProxyType(_load()[1])
"""Values of each enumeration."""


def table_schema(name: str) -> TableSchema:
    """The table of that name.

    Raises:
        UnknownTableError: There is none; the message names the nearest.
    """
    table = TABLES.get(name)
    if table is None:
        raise UnknownTableError(no_such_table(name))
    return table


def no_such_table(name: str) -> str:
    """The sentence for a table that no profile has; it names the nearest."""
    from difflib import get_close_matches

    near = get_close_matches(name, TABLES, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else "`neuron-profile show-schema` lists all tables."
    return f"A profile has no table {name!r}. {hint}"


@cache
def arrow_schema(name: str) -> pa.Schema:
    """The Arrow schema of a table: every column, in order, texts that repeat as dictionaries.

    Raises:
        UnknownTableError: There is no such table.
    """
    import pyarrow as pa

    table = table_schema(name)
    return pa.schema(
        [
            pa.field(
                field.name,
                arrow_type(table, field),
                nullable=not field.required,
                metadata={"unit": field.unit} if field.unit else None,
            )
            for field in table.fields
        ]
    )


def arrow_type(table: TableSchema, field: Field) -> pa.DataType:
    """The Arrow type of one column."""
    import pyarrow as pa

    if field.type == "string" and is_dictionary(table, field):
        return pa.dictionary(pa.int32(), pa.string())
    return plain_types()[field.type]


@cache
def plain_types() -> Mapping[str, pa.DataType]:
    """The Arrow type of each type that the schema names, texts as they are."""
    import pyarrow as pa

    return {
        "int64": pa.int64(),
        "int32": pa.int32(),
        "float64": pa.float64(),
        "bool": pa.bool_(),
        "string": pa.string(),
        "list<int64>": pa.list_(pa.int64()),
        "list<string>": pa.list_(pa.string()),
    }


def is_dictionary(table: TableSchema, field: Field) -> bool:
    """Whether a text column is kept as codes into a dictionary."""
    distinct = field.name in _DISTINCT_TEXTS or field.name.endswith("_per_interval")
    return field.type == "string" and not distinct and table.name not in _LOOK_UP_TABLES
