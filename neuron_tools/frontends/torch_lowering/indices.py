"""Indices of gathers and scatters in the form in which XLA's partitioner understands them.

torch-mlir writes the place of an element as numbers that count through rows, joined with the index within the
row. Where such rows are said to be batches, they stay on the cores that have them. Indices have 32 bits: with
such ones the partitioner fills up dimensions that cores do not divide; at longer ones it ends the process.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from torch_mlir import ir

from neuron_tools.frozen import frozen

_FIELD = re.compile(r"(\w+) = (\[[\d, ]*\]|\d+)")


@frozen
class _Names:
    """How an operation calls its parts."""

    numbers: str
    collapsed: str
    mapped: str
    batches: str
    index_batches: str


_NAMES = {
    "stablehlo.gather": _Names(
        "dimension_numbers", "collapsed_slice_dims", "start_index_map",
        "operand_batching_dims", "start_indices_batching_dims",
    ),
    "stablehlo.scatter": _Names(
        "scatter_dimension_numbers", "inserted_window_dims", "scatter_dims_to_operand_dims",
        "input_batching_dims", "scatter_indices_batching_dims",
    ),
}  # fmt: skip


def simplify_indices(block: Any) -> None:
    """Give each gather and scatter of a block its indices in that form.

    Args:
        block: Of StableHLO operations; it is changed.
    """
    for operation in [each.operation for each in block.operations]:
        if operation.name in _NAMES:
            _let_rows_be_batches(operation, _NAMES[operation.name])
            at = _place(operation)
            operation.operands[at] = _narrowed(operation.operands[at], operation)


def _place(operation: Any) -> int:
    """The indices' place: a scatter has as many operands before them as updates behind."""
    return len(operation.operands) // 2


def _let_rows_be_batches(operation: Any, names: _Names) -> None:
    joined = _maker(operation.operands[_place(operation)])
    numbers = _numbers(operation.attributes[names.numbers])
    if joined is None or joined.name != "stablehlo.concatenate" or names.batches in numbers:
        return
    if _integer(joined, "dimension") != numbers["index_vector_dim"]:
        return
    parts = dict(zip(numbers[names.mapped], joined.operands))
    rows = _rows(operation, {axis: parts[axis] for axis in numbers[names.collapsed] if axis in parts})
    kept = {axis: part for axis, part in parts.items() if axis not in rows}
    if not rows or not kept or len(joined.operands) != joined.results[0].type.shape[-1]:
        return
    numbers[names.collapsed] = [axis for axis in numbers[names.collapsed] if axis not in rows]
    numbers[names.mapped] = list(kept)
    numbers[names.batches], numbers[names.index_batches] = list(rows), list(rows.values())
    fields = ", ".join(f"{name} = {value}" for name, value in numbers.items())
    operation.attributes[names.numbers] = ir.Attribute.parse(f"#{operation.name}<{fields}>")
    operation.operands[_place(operation)] = _joined(list(kept.values()), joined, operation)


def _rows(operation: Any, parts: Mapping[int, Any]) -> dict[int, int]:
    """The axes whose rows are all counted through, and for each the dimension of the indices that does."""
    table = operation.operands[0].type.shape
    counted = {axis: _counted(part) for axis, part in sorted(parts.items())}
    return {
        axis: place
        for axis, place in counted.items()
        if place is not None and table[axis] == parts[axis].type.shape[place]
    }


def _joined(parts: Sequence[Any], before: Any, user: Any) -> Any:
    """What is left of what was joined."""
    if len(parts) == 1:
        return parts[0]
    shape = list(before.results[0].type.shape)
    shape[_integer(before, "dimension")] = len(parts)
    kind = ir.RankedTensorType.get(shape, before.results[0].type.element_type)
    return _made(before.name, kind, parts, user, {"dimension": before.attributes["dimension"]})


def _counted(value: Any) -> int | None:
    """The dimension along which a value counts from 0; None where it does something else."""
    maker = _maker(value)
    if maker is None or maker.name not in (
        "stablehlo.iota",
        "stablehlo.reshape",
        "stablehlo.broadcast_in_dim",
    ):
        return None
    if maker.name == "stablehlo.iota":
        return _integer(maker, "iota_dimension")
    inner, before, after = _counted(maker.operands[0]), maker.operands[0].type.shape, value.type.shape
    if inner is None or before[inner] == 1:
        return None
    if maker.name == "stablehlo.broadcast_in_dim":
        return int(ir.DenseI64ArrayAttr(maker.attributes["broadcast_dimensions"])[inner])
    is_same = [before[at] for at in _long(before)] == [after[at] for at in _long(after)]
    return _long(after)[_long(before).index(inner)] if is_same else None


def _long(shape: Sequence[int]) -> list[int]:
    """The dimensions longer than 1: a reshape that only adds and removes others keeps their order."""
    return [at for at, extent in enumerate(shape) if extent != 1]


def _narrowed(value: Any, user: Any) -> Any:
    kind = ir.RankedTensorType.get(value.type.shape, ir.IntegerType.get_signless(32))
    return value if kind == value.type else _made("stablehlo.convert", kind, [value], user, {})


def _made(name: str, kind: Any, operands: Sequence[Any], user: Any, attributes: dict[str, Any]) -> Any:
    return ir.Operation.create(
        name,
        results=[kind],
        operands=list(operands),
        attributes=attributes,
        loc=user.location,
        ip=ir.InsertionPoint(user),
    ).result


def _maker(value: Any) -> Any:
    """The operation that makes a value; None for an argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner


def _integer(operation: Any, name: str) -> int:
    return int(ir.IntegerAttr(operation.attributes[name]).value)


def _numbers(attribute: Any) -> dict[str, Any]:
    """The fields of dimension numbers: a number, or a list of some."""
    fields = dict(_FIELD.findall(str(attribute)))
    return {name: json.loads(text) for name, text in fields.items()}
