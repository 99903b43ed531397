"""JSON objects put together from members that stand in columns."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.arrays import Ints


def objects_of_members(rows: int, row: Ints, keys: pa.Array, values: pa.Array) -> pa.StringArray:
    """One JSON object a row.

    Args:
        rows: Number of objects.
        row: int64, shape (members,), ascending: which object each member belongs to.
        keys: Texts; none is null.
        values: JSON text; members whose value is null are left out.

    Returns:
        Texts, shape (rows,); null for a row without members.
    """
    known = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    members = pc.binary_join_element_wise(quoted(keys), values, ":").take(pa.array(known))
    offsets = np.searchsorted(row[known], np.arange(rows + 1)).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), members)
    objects = pc.binary_join_element_wise("{", pc.binary_join(lists, ","), "}", "")
    return pc.if_else(pa.array(np.diff(offsets) > 0), objects, pa.scalar(None, pa.string()))


def quoted(column: pa.Array) -> pa.Array:
    """Texts as JSON strings; each different one is escaped once."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    texts = [json.dumps(text, ensure_ascii=False) for text in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(coded.indices)


def finite_doubles(values: np.ndarray) -> pa.Array:
    """Numbers as JSON text, whole ones with a point; null as text where JSON has no number."""
    texts = pa.array(values).cast(pa.string())
    is_whole = pc.match_substring_regex(texts, r"^-?\d+$")
    texts = pc.if_else(is_whole, pc.binary_join_element_wise(texts, ".0", ""), texts)
    return pc.if_else(pa.array(np.isfinite(values)), texts, "null")
