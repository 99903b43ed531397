"""Gradients of attention that are transposed afterwards are made in that order: a token's heads side by side.

Projections, and the sums that are the gradients of their biases, read them so. Several heads' rows then leave
the chip as one piece, where each reader loaded every head's short row by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from neuron_tools.compiler.graph import Rewriter, users
from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.compiler.opcodes import ATTENTION_GRADIENT

_TOKENS_FIRST = (0, 2, 1, 3)


def absorb_into_attention(module: Module) -> Module:
    """See the module's text. Gradients that anybody reads in another order stay as they are."""
    if not any(operation.opcode == ATTENTION_GRADIENT for operation in module.operations):
        return module
    rewriter, read_by, absorbed = Rewriter(module), users(module), set[int]()
    for original in module.operations:
        if not absorbed.isdisjoint(original.results):
            continue
        operation = rewriter.renamed(original)
        turned = [
            place
            for place, value in enumerate(operation.results)
            if operation.opcode == ATTENTION_GRADIENT
            and value not in module.results
            and all(map(_puts_tokens_first, read_by.get(value, ())))
        ]
        if turned:
            operation = _by_tokens(operation, turned, rewriter)
        for place in turned:
            for reader in read_by.get(original.results[place], ()):
                rewriter.alias(reader.results[0], operation.results[place])
                absorbed.update(reader.results)
        rewriter.operations.append(operation)
    return rewriter.finish()


def _puts_tokens_first(reader: Operation) -> bool:
    return reader.opcode == "transpose" and tuple(reader.attributes["permutation"]) == _TOKENS_FIRST


def _by_tokens(operation: Operation, turned: Sequence[int], rewriter: Rewriter) -> Operation:
    """The operation with some results in the order of tokens."""
    results = list(operation.results)
    for place in turned:
        type_ = rewriter.type_of(results[place])
        shape = tuple(type_.shape[axis] for axis in _TOKENS_FIRST)
        results[place] = rewriter.new_value(replace(type_, shape=shape))
    parts = tuple(operation.attributes["parts"][place] for place in turned)
    attributes = {**operation.attributes, "by_tokens": parts}
    return replace(operation, results=tuple(results), attributes=attributes)
