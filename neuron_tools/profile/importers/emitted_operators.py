"""Operators in ranges that PyTorch opened for them: `torch.autograd.profiler.emit_nvtx`, on AMD by roctx."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.profile.importers.json_columns import objects_of_columns

_OPERATOR = (
    r"^(?P<name>[^,]+?)(?:, seq = (?P<sequence>\d{1,18}))?, op_id = (?P<number>\d{1,18})"
    r"(?:, sizes = (?P<sizes>.*))?$"
)
"""What emit_nvtx calls an operator's range."""
_PLAIN = "aten::"
"""How the names of PyTorch's own operators begin."""


def operators_of_ranges(
    names: pa.Array, categories: pa.Array, *, with_arguments: bool = True
) -> dict[str, Any]:
    """Columns in which ranges that stand for operators have the operator's name and category.

    Args:
        names: Texts of the ranges, as recorded.
        categories: Of ranges that are no operators; texts.
        with_arguments: Whether sequence numbers and sizes are kept.

    Returns:
        `name` and `category` as dictionaries, and where there is an operator `arguments_json`.
    """
    found = pc.extract_regex(names, _OPERATOR)
    is_operator = pc.or_(found.is_valid(), pc.starts_with(names, _PLAIN))
    category = pc.if_else(is_operator, "cpu_op", categories).dictionary_encode()
    if found.null_count == len(found):
        return {"name": names.dictionary_encode(), "category": category}
    parts = {name: pc.struct_field(found, name) for name in ("name", "sequence", "sizes")}
    none = pa.scalar(None, pa.string())
    sequence = pc.if_else(pc.equal(parts["sequence"], ""), none, parts["sequence"]).cast(pa.int64())
    sizes = pc.if_else(pc.equal(parts["sizes"], ""), none, parts["sizes"])
    columns = {
        "name": pc.coalesce(parts["name"], names).dictionary_encode(),
        "category": category,
    }
    if with_arguments:
        columns["arguments_json"] = objects_of_columns({"Sequence number": sequence, "sizes": sizes})
    return columns
