"""Results that are parameters or one another, copied: what an operation made has memory of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from neuron_tools.compiler.hlo import Module, Operation, Value
from neuron_tools.compiler.opcodes import BARRIER


def copy_results(module: Module, rows: Mapping[int, tuple[int, ...]]) -> Module:
    """Let some results be copies of what they were.

    Args:
        module: Whose results may be anything.
        rows: By position of a result, the framework rows that its copy is charged to.
    """
    values, operations, results = list(module.values), list(module.operations), list(module.results)
    for position, framework in rows.items():
        result, results[position] = results[position], len(values)
        values.append(Value(len(values), module.values[result].type))
        operations.append(Operation("copy", (result,), (results[position],), framework=framework))
    return replace(module, values=tuple(values), operations=tuple(operations), results=tuple(results))


def with_own_results(module: Module, before: Module) -> Module:
    """Copy results of operations of which passes left a parameter alone, as of `x * 1`, or another result.

    Args:
        module: What passes made.
        before: The same without them. A result that was a parameter stays one, as does one that is in its
            memory or only stood behind a barrier.
    """
    makers = _makers(before)
    places = {value: place for place, value in enumerate(module.parameters)}
    rows: dict[int, tuple[int, ...]] = {}
    taken: set[int] = set()
    for position, (result, made) in enumerate(zip(module.results, before.results)):
        is_parameter = result in places and (position, places[result]) not in module.aliases
        if made in makers and (is_parameter or result in taken):
            rows[position] = makers[made].framework
        else:
            taken.add(result)
    return copy_results(module, rows) if rows else module


def _makers(module: Module) -> dict[int, Operation]:
    """The operation that made each value; of what stands behind a barrier, the one before it."""
    makers: dict[int, Operation] = {}
    for each in module.operations:
        if each.opcode == BARRIER:
            pairs = zip(each.results, each.operands)
            makers.update((result, makers[operand]) for result, operand in pairs if operand in makers)
        else:
            makers.update(dict.fromkeys(each.results, each))
    return makers
