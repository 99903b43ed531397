"""The result of a query as a table, JSON, CSV or Parquet."""

from __future__ import annotations

import io
import json
from typing import Any, BinaryIO

import pyarrow as pa

TABLE_ROWS = 1000


def write_result(result: pa.Table, output_format: str, stream: BinaryIO) -> None:
    """Write a result to a stream in one of the formats "table", "json", "csv" and "parquet"."""
    result = _with_plain_sums(result)
    writers = {"table": _write_table, "json": _write_json, "csv": _write_csv, "parquet": _write_parquet}
    writers[output_format](result, stream)


def _with_plain_sums(result: pa.Table) -> pa.Table:
    """DuckDB's sums of integers are 128 bits wide; as int64 every program can read them."""
    for number, field in enumerate(result.schema):
        if pa.types.is_decimal(field.type) and field.type.scale == 0:
            try:
                column = result.column(number).cast(pa.int64())
            except pa.ArrowInvalid:  # too large
                continue
            result = result.set_column(number, field.name, column)
    return result


def _write_table(result: pa.Table, stream: BinaryIO) -> None:
    from neuron_profile.reports.tables import data_table
    from neuron_profile.reports.terminal import console_for

    numbers = [i for i, field in enumerate(result.schema) if _is_number(field.type)]
    rows = [[_cell(value) for value in row.values()] for row in _records(result.slice(0, TABLE_ROWS))]
    text = io.TextIOWrapper(stream, encoding="utf-8", write_through=True)
    try:
        console_for(text).print(data_table(result.column_names, rows, right=numbers))
        if result.num_rows > TABLE_ROWS:
            text.write(f"(first {TABLE_ROWS:,} of {result.num_rows:,} rows; --format csv writes all)\n")
    finally:
        text.detach()


def _write_json(result: pa.Table, stream: BinaryIO) -> None:
    """A JSON array with one object per row and line."""
    stream.write(b"[")
    for number, row in enumerate(_records(result)):
        separator = b",\n " if number else b"\n "
        stream.write(separator + json.dumps(row, default=str, ensure_ascii=False).encode())
    stream.write(b"\n]\n")


def _write_csv(result: pa.Table, stream: BinaryIO) -> None:
    import csv

    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    try:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(result.column_names)
        writer.writerows(["" if v is None else v for v in row.values()] for row in _records(result))
    finally:
        text.detach()


def _write_parquet(result: pa.Table, stream: BinaryIO) -> None:
    import pyarrow.parquet as pq

    pq.write_table(result, pa.PythonFile(stream, "w"))


def _records(result: pa.Table) -> list[dict[str, Any]]:
    """Rows as column -> value; columns of one name are told apart by their number."""
    names = result.column_names
    if len(set(names)) < len(names):
        result = result.rename_columns([f"{n}_{i}" if names.index(n) < i else n for i, n in enumerate(names)])
    rows: list[dict[str, Any]] = result.to_pylist()
    return rows


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
