"""Algebraic clean-up: operations that do nothing, or that cheaper ones do as well.

`x * 1`, `x + 0`, `x / 1` vanish; division by a constant multiplies by its inverse; powers with small
exponents become products or roots; `max(x, 0)` becomes the engine's relu. The sum of pieces that zeros fill
up side by side, as gradients of slices are, is the pieces put together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from neuron_tools.compiler.graph import OrderedPass
from neuron_tools.compiler.hlo import Module, Operation

_PADDING = ("edge_padding_low", "edge_padding_high", "interior_padding")
_ROOTS = {0.5: "sqrt", -0.5: "rsqrt"}


def simplify_algebra(module: Module) -> Module:
    """See the module's text."""
    return _Algebra(module).run()


class _Piece(NamedTuple):
    value: int
    axis: int
    zeros_before: int
    zeros_behind: int


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
        first, second = operation.operands
        whole = self._side_by_side(first, second)
        if whole is not None:
            return replace(whole, results=operation.results, framework=operation.framework)
        for total, piece in ((first, second), (second, first)):
            joined = self._joined_inside(operation, total, piece)
            if joined is not None:
                return joined
        return self._without(operation, 0)

    def _joined_inside(self, operation: Operation, total: int, piece: int) -> Operation | None:
        """A sum of two terms, one of which the piece completes, as the sum of the other and the whole."""
        inner = self._made_by.get(total)
        if inner is None or inner.opcode != "add":
            return None
        for beside, other in (inner.operands, inner.operands[::-1]):
            whole = self._side_by_side(other, piece)
            if whole is not None:
                type_ = self._rewriter.type_of(operation.results[0])
                made = self._rewriter.add(whole.opcode, whole.operands, type_, operation, **whole.attributes)
                return replace(operation, operands=(beside, made))
        return None

    def _side_by_side(self, first: int, second: int) -> Operation | None:
        """What puts two values together that are pieces of one whole, each with zeros for the other."""
        one, other = self._piece(first), self._piece(second)
        if one is None or other is None or one.axis != other.axis:
            return None
        left, right = (one, other) if one.zeros_before == 0 else (other, one)
        sizes = [self._rewriter.type_of(piece.value).shape[one.axis] for piece in (left, right)]
        if (left.zeros_before, left.zeros_behind) != (0, sizes[1]):
            return None
        if (right.zeros_before, right.zeros_behind) != (sizes[0], 0):
            return None
        return Operation("concatenate", (left.value, right.value), (), {"dimension": one.axis})

    def _piece(self, value: int) -> _Piece | None:
        """What a value holds beside zeros, where these stand before or behind it along one axis."""
        made = self._made_by.get(value)
        if made is None or made.opcode != "pad" or not self._is(made.operands[1], 0):
            return None
        low, high, inner = (tuple(made.attributes.get(name, ())) for name in _PADDING)
        axes = [axis for axis, both in enumerate(zip(low, high)) if any(both)]
        if len(axes) != 1 or any(inner):
            return None
        return _Piece(made.operands[0], axes[0], low[axes[0]], high[axes[0]])

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
