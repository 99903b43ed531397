"""How the columns of a window are encoded: chosen by its rows.

Writing is bound by the encoders, so each column gets the cheapest one that keeps it small: differences for
what grows, a dictionary for what repeats here and there, plain values under a fast compressor for long runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from neuron_tools.frozen import frozen
from neuron_tools.profile.schema import Field, TableSchema

COMPRESSION_LEVEL = 1
SAMPLE_ROWS = 4096
RUN_BYTES_PER_VALUE = 0.25
DISTINCT_OF_SAMPLE = SAMPLE_ROWS // 8
DICTIONARY_BYTES = 8 << 20
_STATISTICS = frozenset({"id", "start_ts", "end_ts", "timestamp"})


@frozen
class _Encoding:
    """Of one column: a dictionary, or a Parquet encoding; and the compressor."""

    codec: str
    encoding: str | None = None

    @property
    def has_dictionary(self) -> bool:
        return self.encoding is None


_DICTIONARY = _Encoding("zstd")
_DIFFERENCES = _Encoding("zstd", "DELTA_BINARY_PACKED")
_RUNS = _Encoding("lz4", "PLAIN")
_FLOATS = _Encoding("zstd", "BYTE_STREAM_SPLIT")
_NULLS = _Encoding("none", "PLAIN")
_TEXT = _Encoding("zstd", "PLAIN")


def writer_options(table: TableSchema, rows: pa.Table) -> dict[str, Any]:
    """Keyword arguments of `pyarrow.parquet.ParquetWriter` for a window of these rows.

    Depends on nothing but the rows, so that equal captures give equal files.
    """
    chosen = {leaf_path(field): _choose(field, rows.column(field.name)) for field in table.fields}
    return {
        "compression": {path: encoding.codec for path, encoding in chosen.items()},
        "compression_level": {
            path: COMPRESSION_LEVEL for path, encoding in chosen.items() if encoding.codec == "zstd"
        },
        "use_dictionary": [path for path, encoding in chosen.items() if encoding.has_dictionary],
        "column_encoding": {
            path: encoding.encoding for path, encoding in chosen.items() if encoding.encoding
        },
        "write_statistics": [name for name in table.column_names if name in _STATISTICS],
        "dictionary_pagesize_limit": DICTIONARY_BYTES,
    }


def leaf_path(field: Field) -> str:
    """Parquet's own name of a column: a list's values lie one level down."""
    return f"{field.name}.list.element" if field.type.startswith("list") else field.name


def _choose(field: Field, column: pa.ChunkedArray) -> _Encoding:
    if column.null_count == len(column):
        return _NULLS
    if field.type == "bool":
        return _RUNS
    if field.type == "string":
        return _DICTIONARY if pa.types.is_dictionary(column.type) or len(column) < SAMPLE_ROWS else _TEXT
    if field.type == "int64" and _grows(field):
        return _DIFFERENCES
    if len(column) < SAMPLE_ROWS or field.type.startswith("list") or column.null_count:
        return _DICTIONARY
    return _by_sample(column)


def _by_sample(column: pa.ChunkedArray) -> _Encoding:
    middle = max(len(column) - SAMPLE_ROWS, 0) // 2
    sample = column.slice(middle, SAMPLE_ROWS).to_numpy()
    if len(pa.Codec("lz4").compress(sample.tobytes())) < RUN_BYTES_PER_VALUE * len(sample):
        return _RUNS
    if len(np.unique(sample)) <= DISTINCT_OF_SAMPLE:
        return _DICTIONARY
    return _DIFFERENCES if np.issubdtype(sample.dtype, np.integer) else _FLOATS


def _grows(field: Field) -> bool:
    """Times and ids, which differ from row to row, but not by much."""
    return field.unit == "nanoseconds" or field.name == "id" or field.name.endswith("_id")
