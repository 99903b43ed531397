"""Finds mean and variance of the same data, which the Vector engine computes in one pass.

`sum(x)/n` and `sum((x - mean)^2)/n` become `moments` with two results: the mean and the variance. The
subtraction stays where something else uses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from neuron_tools.compiler.graph import Rewriter, producers
from neuron_tools.compiler.hlo import Module, Operation

_THROUGH = ("reshape", "broadcast_in_dim", "convert")


def recognise_moments(module: Module) -> Module:
    """See the module's text. `moments` carries the attribute `dimensions` of the reductions."""
    made_by = producers(module)
    constants = {op.results[0] for op in module.operations if op.opcode == "constant"}
    variance_of = {
        op.results[0]: found
        for op in module.operations
        if (found := _second_moment(op, made_by, constants)) is not None
    }
    if not variance_of:
        return module
    return _rewrite(module, variance_of)


def _second_moment(
    operation: Operation, made_by: Mapping[int, Operation], constants: set[int]
) -> tuple[int, Operation, Operation] | None:
    """(data, reduction of the mean, its division) if an operation is the division by n of a second moment."""
    total = _averaged(operation, made_by, constants)
    if total is None:
        return None
    square = made_by.get(_through(total.operands[0], made_by))
    if square is None or square.opcode != "multiply" or square.operands[0] != square.operands[1]:
        return None
    centred = made_by.get(_through(square.operands[0], made_by))
    if centred is None or centred.opcode != "subtract":
        return None
    mean = made_by.get(_through(centred.operands[1], made_by))
    first = _averaged(mean, made_by, constants) if mean is not None else None
    if (
        mean is None
        or first is None
        or first.attributes.get("dimensions") != total.attributes.get("dimensions")
    ):
        return None
    if _through(first.operands[0], made_by) != _through(centred.operands[0], made_by):
        return None
    return first.operands[0], first, mean


def _averaged(
    operation: Operation, made_by: Mapping[int, Operation], constants: set[int]
) -> Operation | None:
    """The sum that an operation divides (or multiplies) by a constant."""
    if operation.opcode not in ("divide", "multiply"):
        return None
    if not any(_through(value, made_by) in constants for value in operation.operands):
        return None
    for value in operation.operands:
        inner = made_by.get(_through(value, made_by))
        if inner is not None and inner.opcode == "reduce" and _is_sum(inner):
            return inner
    return None


def _is_sum(operation: Operation) -> bool:
    body = operation.regions[0].operations if operation.regions else ()
    return len(operation.results) == 1 and [inner.opcode for inner in body] == ["add"]


def _through(value: int, made_by: Mapping[int, Operation]) -> int:
    """The value before reshapes, broadcasts and converts."""
    operation = made_by.get(value)
    while operation is not None and operation.opcode in _THROUGH:
        value = operation.operands[0]
        operation = made_by.get(value)
    return value


def _rewrite(
    module: Module,
    variance_of: Mapping[int, tuple[int, Operation, Operation]],
) -> Module:
    rewriter = Rewriter(module)
    moments: dict[int, tuple[int, int]] = {}  # sum of the mean -> (mean, variance)
    needed = {found[1].results[0]: found for found in variance_of.values()}
    for operation in module.operations:
        result = operation.results[0] if operation.results else -1
        if result in needed:
            moments[result] = _moments(rewriter, operation)
        if result in variance_of:
            variance = moments[variance_of[result][1].results[0]][1]
            rewriter.operations.append(_reshaped(operation, variance))
            continue
        if any(result == found[2].results[0] for found in variance_of.values()):
            source = next(f[1].results[0] for f in variance_of.values() if f[2].results[0] == result)
            rewriter.operations.append(_reshaped(operation, moments[source][0]))
            continue
        rewriter.operations.append(operation)
    return rewriter.finish()


def _moments(rewriter: Rewriter, total: Operation) -> tuple[int, int]:
    type_ = rewriter.type_of(total.results[0])
    mean, variance = rewriter.new_value(type_), rewriter.new_value(type_)
    attributes = {"dimensions": total.attributes.get("dimensions", ())}
    rewriter.operations.append(
        Operation("moments", total.operands[:1], (mean, variance), attributes, total.framework)
    )
    return mean, variance


def _reshaped(operation: Operation, value: int) -> Operation:
    """`operation`'s result as a reshape (and conversion) of a moment."""
    return replace(operation, opcode="reshape", operands=(value,), attributes={})
