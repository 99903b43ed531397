"""Blocks of MLIR operations to which some are added where they are not yet in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch_mlir import ir

from neuron_tools.frontends.torch_lowering.partition import in_order


def entry(module: Any) -> Any:
    """The function that is called from outside: the module's first."""
    return next(each for each in module.body if each.operation.name == "func.func")


def terminator(block: Any) -> Any:
    """The operation that a block ends with."""
    return block.operations[len(block.operations) - 1].operation


def order(block: Any) -> None:
    """Let each operation stand after those that make its operands."""
    end = terminator(block)
    operations = [each.operation for each in block.operations][:-1]
    makers = {result: at for at, operation in enumerate(operations) for result in operation.results}
    needed = [sorted({makers[value] for value in _used(each) if value in makers} - {at})
              for at, each in enumerate(operations)]  # fmt: skip
    for at in in_order(needed):
        operations[at].move_before(end)


def insert(
    block: Any,
    name: str,
    operands: Sequence[Any],
    types: Sequence[Any],
    attributes: Mapping[str, Any],
    row: int,
) -> Any:
    """Add an operation of a framework row at a block's end, before what it ends with.

    Args:
        block: It is changed.
        name: The operation's.
        operands: Values.
        types: Of the results.
        attributes: By name.
        row: The framework row.
    """
    return ir.Operation.create(
        name,
        results=list(types),
        operands=list(operands),
        attributes=dict(attributes),
        loc=ir.Location.name(f"fw:{row}"),
        ip=ir.InsertionPoint(terminator(block)),
    )


def end_with(block: Any, results: Sequence[int]) -> None:
    """Let a block return these of what it returned."""
    end = terminator(block)
    wanted = [end.operands[position] for position in results]
    ir.Operation.create(end.name, operands=wanted, ip=ir.InsertionPoint(end))
    end.erase()


def declare(function: Any) -> None:
    """Let a function say what its block takes and gives now."""
    block = function.regions[0].blocks[0]
    taken = [argument.type for argument in block.arguments]
    given = [value.type for value in terminator(block).operands]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(taken, given))


def _used(operation: Any) -> Iterator[Any]:
    """Operands of an operation, also those that its regions take from outside."""
    yield from operation.operands
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _used(inner.operation)
