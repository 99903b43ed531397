"""JSON text of many rows at once: columns in, one object a row out, without a Python loop over rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

ONE = pa.scalar("", pa.string())


def json_values(column: pa.Array) -> pa.Array:
    """Each value as JSON text; null, NaN and infinity (which JSON does not have) stay null."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _quoted(column)
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_finite(column), column, pa.scalar(None, kind)).cast(pa.string())
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _quoted(column.dictionary_encode())
    texts = [None if value is None else json.dumps(value, default=str) for value in column.to_pylist()]
    return pa.array(texts, pa.string())


def _quoted(column: pa.DictionaryArray) -> pa.Array:
    quoted = pa.array([json.dumps(text) for text in column.dictionary.to_pylist()], pa.string())
    return quoted.take(column.indices)


def json_objects(columns: Mapping[str, pa.Array], rows: int, *, raw: Iterable[str] = ()) -> pa.Array:
    """One JSON object a row; keys whose value is null are left out.

    Args:
        columns: Key -> values, `rows` each.
        rows: Number of objects (needed where there is no column).
        raw: Keys whose values are JSON text already.
    """
    verbatim = frozenset(raw)
    members = []
    for key, column in columns.items():
        values = column if key in verbatim else json_values(column)
        members.append(pc.fill_null(joined(f",{json.dumps(key)}:", values), ""))
    if not members:
        return pa.array(["{}"] * rows, pa.string())
    # Each member brings its own comma: joining with null_handling="skip" loses rows in which all are null.
    inside = pc.utf8_slice_codeunits(joined(*members), 1)
    return joined("{", inside, "}")


def merged_objects(first: pa.Array, second: pa.Array) -> pa.Array:
    """Members of two JSON objects in one, row by row; null counts as an empty object."""
    inner = [pc.utf8_slice_codeunits(pc.fill_null(column, "{}"), 1, -1) for column in (first, second)]
    between = pc.if_else(pc.and_(*(pc.not_equal(text, "") for text in inner)), ",", "")
    return joined("{", inner[0], between, inner[1], "}")


def joined(*parts: pa.Array | str) -> pa.Array:
    """Texts side by side, row by row; null where any of them is null."""
    scalars = [pa.scalar(part, pa.string()) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*scalars, ONE)


def microseconds(nanoseconds: Any) -> pa.Array:
    """Exact decimal text in microseconds of int64 nanoseconds >= 0."""
    values = pa.array(nanoseconds, pa.int64())
    whole = pc.divide(values, 1000)
    rest = pc.subtract(values, pc.multiply(whole, 1000))
    return joined(whole.cast(pa.string()), ".", pc.utf8_lpad(rest.cast(pa.string()), 3, "0"))


class JsonList:
    """A JSON list written as it comes, one element a line."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._empty = True

    def write(self, elements: pa.Array) -> None:
        """Adds elements that are JSON text."""
        if not len(elements):
            return
        self._stream.write(b"\n" if self._empty else b",\n")
        self._stream.write(",\n".join(elements.to_pylist()).encode())
        self._empty = False


def write_lists(stream: BinaryIO, lists: Iterator[tuple[str, Iterator[pa.Array]]]) -> dict[str, int]:
    """Writes an object of lists; returns the number of elements of each."""
    counts: dict[str, int] = {}
    stream.write(b"{")
    for key, batches in lists:
        stream.write((",\n" if counts else "\n").encode() + json.dumps(key).encode() + b": [")
        counts[key] = 0
        elements = JsonList(stream)
        for batch in batches:
            elements.write(batch)
            counts[key] += len(batch)
        stream.write(b"]")
    stream.write(b"\n}\n")
    return counts
