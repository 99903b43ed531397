"""Algebraic clean-up: operations that do nothing, or that cheaper ones do as well.

`x * 1`, `x + 0`, `x / 1` vanish; division by a constant multiplies by its inverse; powers with small
exponents become products or roots; `max(x, 0)` becomes the engine's relu.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from neuron_tools.compiler.graph import OrderedPass
from neuron_tools.compiler.hlo import Module, Operation

_ROOTS = {0.5: "sqrt", -0.5: "rsqrt"}


def simplify_algebra(module: Module) -> Module:
    """See the module's text."""
    return _Algebra(module).run()


class _Algebra(OrderedPass):
    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self._constants: dict[int, Any] = {}

    def _rewritten(self, operation: Operation) -> Operation | None:
        if operation.opcode == "constant" and not isinstance(operation.attributes.get("value"), tuple):
            self._constants[operation.results[0]] = operation.attributes.get("value")
        rule = getattr(self, f"_{operation.opcode}", None)
        return rule(operation) if rule is not None and len(operation.results) == 1 else operation

    def _is(self, value: int, number: float) -> bool:
        known = self._constants.get(value)
        return known is not None and not isinstance(known, str) and known == number

    def _forward(self, operation: Operation, operand: int) -> Operation | None:
        """Let the result stand for an operand of the same type."""
        if self._rewriter.type_of(operand) != self._rewriter.type_of(operation.results[0]):
            return operation
        self._rewriter.alias(operation.results[0], operand)
        return None

    def _without(self, operation: Operation, neutral: float) -> Operation | None:
        """The operand beside one that changes nothing."""
        first, second = operation.operands
        if self._is(second, neutral):
            return self._forward(operation, first)
        return self._forward(operation, second) if self._is(first, neutral) else operation

    def _add(self, operation: Operation) -> Operation | None:
        return self._without(operation, 0)

    def _subtract(self, operation: Operation) -> Operation | None:
        return (
            self._forward(operation, operation.operands[0])
            if self._is(operation.operands[1], 0)
            else operation
        )

    def _multiply(self, operation: Operation) -> Operation | None:
        return self._without(operation, 1)

    def _divide(self, operation: Operation) -> Operation | None:
        numerator, denominator = operation.operands
        if self._is(denominator, 1):
            return self._forward(operation, numerator)
        number = self._constants.get(denominator)
        is_float = not self._rewriter.type_of(denominator).dtype.startswith(("i", "ui", "si"))
        if is_float and isinstance(number, (int, float)) and number and numerator not in self._constants:
            inverse = self._rewriter.add(
                "constant", (), self._rewriter.type_of(denominator), operation, value=1.0 / number
            )
            self._constants[inverse] = 1.0 / number
            return replace(operation, opcode="multiply", operands=(numerator, inverse))
        return operation

    def _power(self, operation: Operation) -> Operation | None:
        base, exponent = operation.operands
        if self._is(exponent, 1):
            return self._forward(operation, base)
        if self._is(exponent, 2):
            return replace(operation, opcode="multiply", operands=(base, base))
        if self._is(exponent, 3):
            square = self._rewriter.add("multiply", (base, base), self._rewriter.type_of(base), operation)
            return replace(operation, opcode="multiply", operands=(square, base))
        for number, opcode in _ROOTS.items():
            if self._is(exponent, number):
                return replace(operation, opcode=opcode, operands=(base,))
        return operation

    def _maximum(self, operation: Operation) -> Operation | None:
        return self._relu(operation) if any(self._is(value, 0) for value in operation.operands) else operation

    def _relu(self, operation: Operation) -> Operation:
        data = [value for value in operation.operands if not self._is(value, 0)]
        dtype = self._rewriter.type_of(operation.results[0]).dtype
        if len(data) != 1 or dtype.startswith(("i", "ui", "si")):
            return operation
        attributes: Mapping[str, Any] = {"function": "relu"}
        return replace(operation, opcode="activation", operands=(data[0],), attributes=attributes)
