"""JSON objects of which each member is a column: arguments of spans made from tables."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.profile.importers.json_members import quoted


def objects_of_columns(columns: Mapping[str, pa.Array]) -> pa.Array:
    """One JSON object a row; a member whose value is null is left out.

    Args:
        columns: Integers or texts by name of the member; not empty.

    Returns:
        Texts; null for a row without members.
    """
    members = [
        pc.coalesce(pc.binary_join_element_wise(f",{json.dumps(name)}:", _json(column), ""), "")
        for name, column in columns.items()
    ]
    joined = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*members, ""), 1)
    objects = pc.binary_join_element_wise("{", joined, "}", "")
    return pc.if_else(pc.equal(joined, ""), pa.scalar(None, pa.string()), objects)


def lists_of_columns(*columns: pa.Array) -> pa.Array:
    """JSON lists of whole numbers as text, marked to be passed on as they are; null where one is missing."""
    joined = pc.binary_join_element_wise(*(column.cast(pa.string()) for column in columns), ",")
    return pa.array(pc.binary_join_element_wise("[", joined, "]", "").to_pylist(), pa.large_string())


def _json(column: pa.Array) -> pa.Array:
    if pa.types.is_large_string(column.type):
        return column.cast(pa.string())
    if pa.types.is_integer(column.type):
        return column.cast(pa.string())
    return quoted(column)
