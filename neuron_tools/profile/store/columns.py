"""Turns the columns a producer has into Arrow columns of a table's schema, checked and cast.

A producer gives what it knows: NumPy arrays, lists or Arrow arrays. What is missing becomes null, what
cannot be is an error that names the column.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.errors import NeuronToolsError
from neuron_tools.profile.schema import Field, TableSchema, arrow_type


class ColumnError(NeuronToolsError):
    """Columns do not fit their table."""


Columns: TypeAlias = "pa.Table | Mapping[str, Any]"


def to_arrow(table: TableSchema, columns: Columns) -> pa.Table:
    """The given columns, in schema order and with the schema's types; absent optional ones are left out.

    Args:
        table: The table they belong to.
        columns: An Arrow table, or NumPy arrays / lists / Arrow arrays of equal length by name.

    Raises:
        ColumnError: A column is unknown, required and missing or null, of another length or type.
    """
    given = _as_mapping(columns)
    _check_names(table, given)
    arrays = {
        field.name: _column(table, field, given[field.name]) for field in table.fields if field.name in given
    }
    _check_lengths(table, arrays)
    return pa.table(arrays)


def null_column(table: TableSchema, field: Field, rows: int) -> pa.Array:
    """A column of nulls of the field's type."""
    return nulls(arrow_type(table, field), rows)


@lru_cache(maxsize=16)
def nulls(kind: pa.DataType, rows: int) -> pa.Array:
    """Nulls of a type; the last ones are kept, for windows have many such columns of one length."""
    return pa.nulls(rows, kind)


def _as_mapping(columns: Columns) -> Mapping[str, Any]:
    if isinstance(columns, pa.Table):
        return {name: columns.column(name) for name in columns.column_names}
    return columns


def _check_names(table: TableSchema, given: Mapping[str, Any]) -> None:
    unknown = sorted(set(given) - set(table.column_names))
    if unknown:
        raise ColumnError(f"Table {table.name} has no column {', '.join(unknown)}.")
    missing = [name for name in table.required if name not in given]
    if missing:
        raise ColumnError(f"Table {table.name} needs the column {', '.join(missing)}.")


def _check_lengths(table: TableSchema, arrays: Mapping[str, pa.ChunkedArray]) -> None:
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise ColumnError(f"Columns of table {table.name} differ in length: {lengths}.")


def _column(table: TableSchema, field: Field, values: Any) -> pa.ChunkedArray:
    wanted = arrow_type(table, field)
    try:
        array = _cast(_array(values), wanted)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ColumnError(f"{table.name}.{field.name} must be {field.type}: {_first_line(error)}.") from error
    if field.required and array.null_count:
        raise ColumnError(
            f"{table.name}.{field.name} is required, but {array.null_count} of its values are null."
        )
    return array


def _array(values: Any) -> pa.ChunkedArray:
    if isinstance(values, pa.ChunkedArray):
        return values
    return pa.chunked_array([values if isinstance(values, pa.Array) else pa.array(values)])


def _cast(array: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if array.type == wanted:
        return array
    given, value_type = _value_type(array.type), _value_type(wanted)
    if _is_text(given) != _is_text(value_type) and not pa.types.is_null(given):
        raise TypeError(f"{given} is given")  # Arrow would read numbers from texts, and print them into texts
    if pa.types.is_dictionary(wanted):
        return _as_dictionary(array, wanted)
    return array.cast(given).cast(wanted, safe=True)


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _as_dictionary(array: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_dictionary(array.type):
        return array.cast(wanted)
    if not len(array):
        return pa.chunked_array([], type=wanted)
    return pc.dictionary_encode(array.cast(wanted.value_type)).cast(wanted)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
