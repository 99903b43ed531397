"""Lets dots read transposed operands in place: the transpose goes into the dimension numbers.

The Tensor engine wants the contraction on partitions whatever the order in memory, so an explicit
transpose before a dot would move the data twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from neuron_tools.compiler.graph import producers
from neuron_tools.compiler.hlo import Module, Operation

_SIDES = ("lhs", "rhs")


def absorb_transposes(module: Module) -> Module:
    """Make each dot read through transposes that keep the order of its free dimensions."""
    made_by = producers(module)
    operations = tuple(
        _absorbed(operation, made_by) if operation.opcode == "dot_general" else operation
        for operation in module.operations
    )
    return replace(module, operations=operations)


def _absorbed(operation: Operation, made_by: dict[int, Operation]) -> Operation:
    operands = list(operation.operands)
    numbers = dict(operation.attributes.get("dot_dimension_numbers", {}))
    for index, side in enumerate(_SIDES):
        source = made_by.get(operands[index])
        if source is None or source.opcode != "transpose":
            continue
        permutation = tuple(source.attributes["permutation"])
        moved = {
            name: tuple(permutation[axis] for axis in numbers.get(name, ()))
            for name in (f"{side}_batching_dimensions", f"{side}_contracting_dimensions")
        }
        used = {axis for axes in moved.values() for axis in axes}
        if _keeps_order([axis for axis in permutation if axis not in used]):
            numbers.update(moved)
            operands[index] = source.operands[0]
    attributes = {**operation.attributes, "dot_dimension_numbers": numbers}
    return replace(operation, operands=tuple(operands), attributes=attributes)


def _keeps_order(axes: Sequence[int]) -> bool:
    return list(axes) == sorted(axes)
