"""Finds the integer scalars that engines compute in registers: loop counters and what follows from them.

Addresses of dynamic slices made of such scalars cost no instructions of their own, and a loop's counter
never goes through memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.compiler.opcodes import BINARY, TERNARY, VECTOR_UNARY

_ADDRESSED = {"dynamic_slice": 1, "dynamic_update_slice": 2}
"""Operations that take start indices -> how many operands stand before them."""
_REGISTER_OPCODES = (
    BINARY | TERNARY | VECTOR_UNARY | {"constant", "convert", "reshape", "broadcast_in_dim", "slice"}
)


def register_values(module: Module, given: Iterable[int]) -> frozenset[int]:
    """Integer scalars computed only from constants and from those of `given` that are integer scalars."""
    held = {value for value in given if is_integer_scalar(module, value)}
    for operation in module.operations:
        if operation.opcode not in _REGISTER_OPCODES or operation.regions:
            continue
        touched = (*operation.operands, *operation.results)
        if all(is_integer_scalar(module, value) for value in touched) and held.issuperset(operation.operands):
            held.update(operation.results)
    return frozenset(held)


def is_integer_scalar(module: Module, value: int) -> bool:
    """Whether a register can hold a value."""
    type_ = module.values[value].type
    return type_.element_count == 1 and type_.dtype[:1] in ("i", "u", "s")


def address_by_register(module: Module) -> Module:
    """Take start indices that registers hold off the operands of dynamic slices."""
    held = register_values(module, module.parameters)
    if not held:
        return module
    operations = tuple(_addressed(operation, held) for operation in module.operations)
    return replace(module, operations=operations)


def _addressed(operation: Operation, held: frozenset[int]) -> Operation:
    first = _ADDRESSED.get(operation.opcode)
    if first is None or not all(value in held for value in operation.operands[first:]):
        return operation
    return replace(operation, operands=operation.operands[:first])


def without_counters(module: Module) -> tuple[Module, Mapping[int, int]]:
    """A loop's body whose register results are the parameters that they replace: nothing is stored.

    Returns:
        The body, and result position -> register value that the body would have stored there.
    """
    held = register_values(module, module.parameters)
    counters = {
        index: value
        for index, value in enumerate(module.results)
        if value in held and value not in module.parameters and index < len(module.parameters)
    }
    results = tuple(
        module.parameters[index] if index in counters else value for index, value in enumerate(module.results)
    )
    return replace(module, results=results), counters
