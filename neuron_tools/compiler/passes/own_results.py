"""Results that are parameters, copied: what an operation made has memory of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from neuron_tools.compiler.hlo import Module, Operation, Value


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
    """Copy results of operations of which passes left a parameter alone, as of `x * 1`.

    Args:
        module: What passes made.
        before: The same without them. A result that was a parameter stays one, as does one that is in its
            memory or only stood behind a barrier.
    """
    computed = [each for each in before.operations if each.opcode != "optimization_barrier"]
    makers = {value: operation for operation in computed for value in operation.results}
    places = {value: place for place, value in enumerate(module.parameters)}
    pairs = enumerate(zip(module.results, before.results))
    rows = {
        position: makers[made].framework
        for position, (result, made) in pairs
        if result in places and made in makers and (position, places[result]) not in module.aliases
    }
    return copy_results(module, rows) if rows else module
