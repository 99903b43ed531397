"""Gradients of attention that are transposed in the end are made in that order: a token's heads side by side.

Projections, and the sums that are the gradients of their biases, read them so. Several heads' rows then leave
the chip as one piece, where each reader loaded every head's short row by itself. What lies between, as the
gradient of a rotary embedding, follows: transposes sink through it and meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from neuron_tools.compiler.graph import OrderedPass, producers, users
from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.compiler.opcodes import ATTENTION_GRADIENT
from neuron_tools.compiler.passes.sink_transposes import SUNK_THROUGH

_TOKENS_FIRST = (0, 2, 1, 3)
_IN_ANY_ORDER = frozenset({"broadcast_in_dim", "constant"})


def absorb_into_attention(module: Module) -> Module:
    """See the module's text. Gradients that anybody reads in another order stay as they are."""
    if not any(operation.opcode == ATTENTION_GRADIENT for operation in module.operations):
        return module
    return _Absorber(module).run()


class _Absorber(OrderedPass):
    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self._module = module
        self._read_by = users(module)
        self._makers = producers(module)

    def _rewritten(self, operation: Operation) -> Operation | None:
        if operation.opcode != ATTENTION_GRADIENT:
            return operation
        turned = [place for place, value in enumerate(operation.results) if self._ends_by_tokens(value)]
        if not turned:
            return operation
        made = self._by_tokens(operation, turned)
        self._keep(made)
        order: Mapping[str, object] = {"permutation": _TOKENS_FIRST}
        for place in turned:
            back = (made.results[place],), (operation.results[place],)
            self._keep(Operation("transpose", *back, order, operation.framework))
        return None

    def _ends_by_tokens(self, gradient: int) -> bool:
        """Whether all that is made of a gradient, element by element, is transposed before anything else."""
        pending, seen = [gradient], {gradient}
        while pending:
            value = pending.pop()
            if value in self._module.results:
                return False
            for reader in self._read_by.get(value, ()):
                if reader.opcode == "transpose" and tuple(reader.attributes["permutation"]) == _TOKENS_FIRST:
                    continue
                if reader.opcode not in SUNK_THROUGH or len(reader.results) != 1:
                    return False
                pending += [result for result in reader.results if result not in seen]
                seen.update(reader.results)
        beside = (value for made in seen - {gradient} for value in self._makers[made].operands)
        return all(value in seen or self._is_in_any_order(value) for value in beside)

    def _is_in_any_order(self, value: int) -> bool:
        maker = self._makers.get(value)
        return maker is not None and maker.opcode in _IN_ANY_ORDER

    def _by_tokens(self, operation: Operation, turned: Sequence[int]) -> Operation:
        """The operation with some results in the order of tokens."""
        results = list(operation.results)
        for place in turned:
            type_ = self._rewriter.type_of(results[place])
            shape = tuple(type_.shape[axis] for axis in _TOKENS_FIRST)
            results[place] = self._rewriter.new_value(replace(type_, shape=shape))
        parts = tuple(operation.attributes["parts"][place] for place in turned)
        attributes = {**operation.attributes, "by_tokens": parts}
        return replace(operation, results=tuple(results), attributes=attributes)
