"""Tensors without defined values are not StableHLO: they become zeros, free where they are overwritten."""

from __future__ import annotations

from typing import Any

from torch_mlir import ir


def define_values(module: ir.Module) -> None:
    """Replace every `tensor.empty` of a module by a constant, complex ones aside."""
    for empty in _empty_tensors(module.operation):
        type_ = empty.result.type
        if str(type_.element_type).startswith("complex"):
            continue
        zero = _zero(type_.element_type)
        with empty.location, ir.InsertionPoint(empty):
            value = ir.DenseElementsAttr.get_splat(type_, zero)
            made = ir.Operation.create("stablehlo.constant", results=[type_], attributes={"value": value})
        empty.result.replace_all_uses_with(made.result)
        empty.erase()


def _zero(element: Any) -> Any:
    if str(element).lstrip("su").startswith("i"):
        return ir.IntegerAttr.get(element, 0)
    with ir.Location.unknown(element.context):
        return ir.FloatAttr.get(element, 0.0)


def _empty_tensors(operation: Any) -> list[Any]:
    blocks = [block for region in operation.regions for block in region.blocks]
    found = []
    for view in (view for block in blocks for view in block.operations):
        found += _empty_tensors(view.operation)
        if view.operation.name == "tensor.empty":
            found.append(view.operation)
    return found
