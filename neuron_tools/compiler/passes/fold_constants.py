"""Computes at compile time what depends on scalars and splats alone.

Only what decides shapes of code matters here (factors, epsilons, trip counts), so values are Python
numbers; rounding to the element type is not modelled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from neuron_tools.compiler.graph import Rewriter
from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.compiler.opcodes import BARRIER

_UNARY: Mapping[str, Callable[[Any], Any]] = {
    "abs": abs, "negate": lambda x: -x, "sqrt": math.sqrt, "rsqrt": lambda x: 1 / math.sqrt(x),
    "exponential": math.exp, "log": math.log, "tanh": math.tanh, "sine": math.sin, "cosine": math.cos,
    "floor": math.floor, "ceil": math.ceil, "not": lambda x: not x, "sign": lambda x: (x > 0) - (x < 0),
    "logistic": lambda x: 1 / (1 + math.exp(-x)), "erf": math.erf,
}  # fmt: skip
_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b, "maximum": max, "minimum": min, "power": lambda a, b: a**b,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
}  # fmt: skip
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "EQ": lambda a, b: a == b, "NE": lambda a, b: a != b, "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b, "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b,
}  # fmt: skip
_KEEP_SPLAT = frozenset(
    {
        "reshape",
        "broadcast_in_dim",
        "transpose",
        "slice",
        "dynamic_reshape",
        "dynamic_broadcast_in_dim",
        "reverse",
        "copy",
        BARRIER,
    }
)


def fold_constants(module: Module) -> Module:
    """Replace operations on splat constants, and comparisons that always come out alike, by constants."""
    rewriter = Rewriter(module)
    splats: dict[int, Any] = {}
    counted: dict[int, tuple[int, int]] = {}
    for operation in module.operations:
        _note_range(operation, counted, rewriter)
        value = _splat(operation, splats, rewriter)
        if value is None:
            value = _always(operation, splats, counted)
        if value is None:
            rewriter.operations.append(operation)
            continue
        splats[operation.results[0]] = value
        folded = operation
        if operation.opcode != "constant":
            folded = replace(
                operation, opcode="constant", operands=(), attributes={"value": value}, regions=()
            )
        rewriter.operations.append(folded)
    return rewriter.finish()


def _splat(operation: Operation, splats: Mapping[int, Any], rewriter: Rewriter) -> Any | None:
    """The one number that all elements of the result have, or None if that is not known."""
    if operation.opcode == "constant":
        value = operation.attributes.get("value")
        return None if isinstance(value, tuple) else value
    if len(operation.results) != 1 or not operation.operands or operation.operands[0] not in splats:
        return None
    first = splats[operation.operands[0]]
    if operation.opcode in _KEEP_SPLAT:
        return first
    if any(operand not in splats for operand in operation.operands):
        return None
    try:
        return _evaluate(operation, [splats[operand] for operand in operation.operands], rewriter)
    except (ArithmeticError, ValueError, TypeError):
        return None


def _note_range(operation: Operation, counted: dict[int, tuple[int, int]], rewriter: Rewriter) -> None:
    """Remember the smallest and the largest element of what counts through an axis."""
    if operation.opcode == "iota":
        extent = rewriter.type_of(operation.results[0]).shape[int(operation.attributes["iota_dimension"])]
        counted[operation.results[0]] = (0, extent - 1)
    elif operation.opcode in _KEEP_SPLAT | {"convert"} and operation.operands[0] in counted:
        counted[operation.results[0]] = counted[operation.operands[0]]


def _always(
    operation: Operation, splats: Mapping[int, Any], counted: Mapping[int, tuple[int, int]]
) -> bool | None:
    """What a comparison of a counter with a number comes to, where that is the same for all elements."""
    if operation.opcode != "compare":
        return None
    direction = str(operation.attributes["comparison_direction"])
    left, right = (
        counted.get(value, (splats[value],) * 2 if value in splats else None) for value in operation.operands
    )
    if left is None or right is None or direction in ("EQ", "NE"):
        return None
    if any(isinstance(number, complex) for number in (*left, *right)):
        return None
    found = {_COMPARE[direction](first, second) for first in left for second in right}
    return found.pop() if len(found) == 1 else None


def _evaluate(operation: Operation, values: list[Any], rewriter: Rewriter) -> Any | None:
    opcode = operation.opcode
    dtype = rewriter.type_of(operation.results[0]).dtype
    is_integer = dtype.startswith(("i", "ui", "si")) and dtype != "i1"
    result: Any = None
    if opcode == "convert":
        result = values[0]
    elif opcode in _UNARY and len(values) == 1:
        result = _UNARY[opcode](values[0])
    elif opcode == "compare":
        result = _COMPARE[str(operation.attributes["comparison_direction"])](*values)
    elif opcode == "select":
        result = values[1] if values[0] else values[2]
    elif opcode == "clamp":
        result = min(max(values[1], values[0]), values[2])
    elif opcode in _BINARY and len(values) == 2:
        result = _BINARY[opcode](*values)
    if result is None or isinstance(result, complex):
        return None
    return int(result) if is_integer and math.isfinite(result) else result
