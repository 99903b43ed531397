"""Drops operations whose results nobody uses."""

from __future__ import annotations

from dataclasses import replace

from neuron_tools.compiler.graph import operands_of
from neuron_tools.compiler.hlo import Module, Operation


def eliminate_dead_code(module: Module) -> Module:
    """Keep what the module's results need, and operations marked `has_side_effect`."""
    needed = set(module.results)
    kept: list[Operation] = []
    for operation in reversed(module.operations):
        if needed.isdisjoint(operation.results) and not operation.attributes.get("has_side_effect"):
            continue
        kept.append(operation)
        needed.update(operands_of(operation))
    return replace(module, operations=tuple(reversed(kept)))
