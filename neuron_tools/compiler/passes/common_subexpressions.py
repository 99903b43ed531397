"""Computes once what is written twice."""

from __future__ import annotations

from typing import Any

from neuron_tools.compiler.graph import Rewriter
from neuron_tools.compiler.hlo import Module, Operation, Region
from neuron_tools.compiler.opcodes import BARRIER

_NEVER_EQUAL = frozenset({"rng", "rng_bit_generator", "custom_call", "infeed", "outfeed", BARRIER})


def eliminate_common_subexpressions(module: Module) -> Module:
    """Merge operations of equal opcode, operands, attributes, result types and (one-operation) bodies."""
    rewriter = Rewriter(module)
    seen: dict[Any, tuple[int, ...]] = {}
    for original in module.operations:
        operation = rewriter.renamed(original)
        key = _key(operation, rewriter)
        if key is not None and key in seen:
            for result, earlier in zip(operation.results, seen[key]):
                rewriter.alias(result, earlier)
            continue
        if key is not None:
            seen[key] = operation.results
        rewriter.operations.append(operation)
    return rewriter.finish()


def _key(operation: Operation, rewriter: Rewriter) -> Any | None:
    if operation.opcode in _NEVER_EQUAL:
        return None
    bodies = tuple(_body(region) for region in operation.regions)
    if None in bodies:
        return None
    if operation.opcode == "constant" and operation.attributes.get("value") is None:
        return None
    types = tuple(rewriter.type_of(result) for result in operation.results)
    # repr: attribute values may be dicts, and 0 == 0.0 == False must stay apart
    return operation.opcode, operation.operands, repr(sorted(operation.attributes.items())), types, bodies


def _body(region: Region) -> str | None:
    """The opcode of a one-operation body on the parameters alone, e.g. a sum's; None for any other."""
    if len(region.operations) != 1 or region.operations[0].operands != region.parameters:
        return None
    return region.operations[0].opcode
