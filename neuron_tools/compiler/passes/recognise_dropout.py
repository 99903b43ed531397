"""Recognises dropout whose mask nobody keeps: the Vector engine draws and applies it in one instruction.

A product with (uniform random number < share kept) is a `dropout` with the probability to be lost. Where the
mask is stored, as for a backward pass, the operations stay as they are.
"""

from __future__ import annotations

from neuron_tools.compiler.graph import Finder, Rewriter
from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.compiler.opcodes import DROPOUT

_MOVED = frozenset({"reshape", "convert"})


def recognise_dropout(module: Module) -> Module:
    """Replace such products; the random numbers and the comparison are dead code then."""
    if not any(operation.opcode == "rng" for operation in module.operations):
        return module
    finder, rewriter = _Finder(module), Rewriter(module)
    for operation in module.operations:
        rewriter.operations.append(finder.dropout(operation) or operation)
    return rewriter.finish()


class _Finder(Finder):
    def dropout(self, operation: Operation) -> Operation | None:
        """The dropout that a product is, or None."""
        if operation.opcode != "multiply":
            return None
        for data, mask in (operation.operands, operation.operands[::-1]):
            kept = self._share_kept(mask)
            if kept is not None:
                attributes = {"probability": 1.0 - kept}
                return Operation(DROPOUT, (data,), operation.results, attributes, operation.framework)
        return None

    def _share_kept(self, mask: int) -> float | None:
        """The probability of a 1 in a mask that is drawn for one reader; None where it is none."""
        test = self._only_for_one(mask)
        if test is None or test.opcode != "compare":
            return None
        if test.attributes.get("comparison_direction") != "LT":
            return None
        numbers, limit = self._only_for_one(test.operands[0]), self._made_by.get(test.operands[1])
        if numbers is None or numbers.opcode != "rng" or limit is None or limit.opcode != "constant":
            return None
        kept = limit.attributes.get("value")
        is_uniform = numbers.attributes.get("rng_distribution") == "UNIFORM"
        bounds = [self._number(value) for value in numbers.operands[:2]]
        return float(kept) if isinstance(kept, float) and is_uniform and bounds == [0.0, 1.0] else None

    def _number(self, value: int) -> float | None:
        maker = self._made_by.get(value)
        number = maker.attributes.get("value") if maker is not None and maker.opcode == "constant" else None
        return float(number) if isinstance(number, (int, float)) else None

    def _only_for_one(self, value: int) -> Operation | None:
        """What makes a value, through movement and conversion, if all of it has one reader."""
        while value not in self._module.results and len(self._users.get(value, ())) == 1:
            operation = self._made_by.get(value)
            if operation is None or operation.opcode not in _MOVED:
                return operation
            value = operation.operands[0]
        return None
