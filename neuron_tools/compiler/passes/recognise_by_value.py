"""Recognises activation functions by what they compute, however a front end writes them.

A group of elementwise operations with one varying input is evaluated at sample points and compared with the
functions of the activation table. So JAX's GELU, PyTorch's and a user's own formula all become the one
ACTIVATE that a good compiler would emit; and where the forward function is known, so does its gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from neuron_tools.compiler.graph import producers, users
from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.frozen import frozen

Samples = npt.NDArray[np.float64]

MAX_OPERATIONS = 48
TOLERANCE = 0.01  # of the larger of 1 and the value: bfloat16 rounds the formulas' constants by 0.4 %
_AT: Samples = np.linspace(-6.0, 6.0, 49) + 0.013
_SLOPES = np.cos(np.arange(len(_AT), dtype=np.float64)) + 1.5


def _erf(x: Samples) -> Samples:
    return np.array([math.erf(value) for value in x])


def _sigmoid(x: Samples) -> Samples:
    return 1 / (1 + np.exp(-x))


FUNCTIONS: Mapping[str, Callable[[Samples], Samples]] = {
    "gelu": lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2))),
    "silu": lambda x: x * _sigmoid(x),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "sigmoid": _sigmoid,
}
"""Function of the activation table -> the same in double precision; the gradient's name adds `_grad`."""

_EVALUATED: Mapping[str, Callable[..., Samples]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "maximum": np.maximum, "minimum": np.minimum, "power": np.power, "negate": np.negative, "abs": np.abs,
    "tanh": np.tanh, "logistic": _sigmoid, "erf": _erf, "erfc": lambda x: 1 - _erf(x), "select": np.where,
    "compare": np.equal, "exponential": np.exp, "log": np.log,
    "log_plus_one": np.log1p, "exponential_minus_one": np.expm1, "sqrt": np.sqrt, "square": np.square,
    "convert": np.positive, "broadcast_in_dim": np.positive, "reshape": np.positive,
}  # fmt: skip
_MOVED = frozenset({"convert", "broadcast_in_dim", "reshape"})
_CURVES = frozenset({"tanh", "logistic", "erf", "erfc", "exponential"})
_COMPARISONS: Mapping[str, Callable[..., Samples]] = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater,
    "GE": np.greater_equal,
}  # fmt: skip


def _derivative(function: Callable[[Samples], Samples]) -> Samples:
    step = 1e-4
    return (function(_AT + step) - function(_AT - step)) / (2 * step)


_VALUES = {name: function(_AT) for name, function in FUNCTIONS.items()}
_GRADIENTS = {name: _derivative(function) * _SLOPES for name, function in FUNCTIONS.items()}


@frozen
class Match:
    """A value that is a known function of another.

    Attributes:
        operation: What makes the value.
        argument: The function's argument.
        function: Its name in the activation table.
        absorbed: Operations that the function stands for.
        gradient: The value that a gradient is multiplied with; None for a function itself.
    """

    operation: Operation
    argument: int
    function: str
    absorbed: tuple[Operation, ...]
    gradient: int | None = None

    def made(self) -> Operation:
        """The one operation that takes the place of all."""
        rows = dict.fromkeys(row for op in (self.operation, *self.absorbed) for row in op.framework)
        inputs = (self.argument,) if self.gradient is None else (self.gradient, self.argument)
        opcode = "activation" if self.gradient is None else "activation_gradient"
        function = self.function if self.gradient is None else f"{self.function}_grad"
        results = self.operation.results
        return Operation(opcode, inputs, results, {"function": function}, tuple(rows))


def recognise_by_value(module: Module) -> Module:
    """Replace what computes a known function, or a value times its derivative, by one operation each.

    What the replaced operations leave unused stays in the module: dead code is another pass's.
    """
    if not any(operation.opcode in _CURVES for operation in module.operations):
        return module
    matches = _Search(module).matches()
    if not matches:
        return module
    operations = [
        matches[operation.results[0]].made()
        if len(operation.results) == 1 and operation.results[0] in matches
        else operation
        for operation in module.operations
    ]
    return replace(module, operations=tuple(operations))


class _Search:
    """Looks for functions among the elementwise operations of one module."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._made_by = producers(module)
        self._used_by = users(module)
        self._constants = {
            op.results[0]: float(op.attributes["value"])
            for op in module.operations
            if op.opcode == "constant" and isinstance(op.attributes.get("value"), (int, float))
        }

    def matches(self) -> dict[int, Match]:
        """Known functions by the value that they make; of groups inside each other the largest only."""
        found: dict[int, Match] = {}
        absorbed: set[int] = set()
        for operation in reversed(self._module.operations):
            is_candidate = operation.opcode in _EVALUATED and id(operation) not in absorbed
            if is_candidate and not self._moves_what_others_read(operation):
                match = self._match(operation)
                if match is not None:
                    found[operation.results[0]] = match
                    absorbed.update(id(op) for op in match.absorbed)
        return found

    def _moves_what_others_read(self, operation: Operation) -> bool:
        """Whether an operation only moves or converts a value that others read: then that is the function."""
        moved: Operation | None = operation
        while moved is not None and moved.opcode in _MOVED:
            (value,) = moved.operands
            if len(self._used_by[value]) > 1 or value in self._module.results:
                return True
            moved = self._made_by.get(value)
        return False

    def _match(self, operation: Operation) -> Match | None:
        cone = self._cone(operation)
        for argument in self._arguments(cone, operation):
            used, slopes = self._between(operation, argument)
            if len(slopes) > 1 or len(used) < 2 or not any(op.opcode in _CURVES for op in used):
                continue
            inputs = {argument: _AT, **dict.fromkeys(slopes, _SLOPES)}
            value = self._evaluate(used, operation, inputs)
            name = _named(value, _GRADIENTS if slopes else _VALUES)
            if name is not None:
                return Match(operation, argument, name, tuple(used), slopes[0] if slopes else None)
        return None

    def _arguments(self, cone: Sequence[Operation], last: Operation) -> list[int]:
        """Values of the result's size that a curve of the cone follows from."""
        size = self._module.values[last.results[0]].type.element_count
        values: dict[int, None] = {}
        for curve in cone:
            if curve.opcode in _CURVES:
                for operation in self._cone(curve):
                    values.update(dict.fromkeys(operation.operands))
        return [
            value
            for value in values
            if value not in self._constants and self._module.values[value].type.element_count == size
        ]

    def _cone(self, last: Operation) -> list[Operation]:
        """Elementwise operations that lead to one, nearest first, at most `MAX_OPERATIONS`."""
        found, seen, next_ = [last], {id(last)}, 0
        while next_ < len(found) < MAX_OPERATIONS:
            for value in found[next_].operands:
                made = self._made_by.get(value)
                if made is not None and made.opcode in _EVALUATED and id(made) not in seen:
                    seen.add(id(made))
                    found.append(made)
            next_ += 1
        return found

    def _between(self, last: Operation, argument: int) -> tuple[list[Operation], list[int]]:
        """The operations between a value and one that follows from it, and what else enters them."""
        found: dict[int, Operation] = {}
        entering: dict[int, None] = {}
        pending = [last]
        while pending and len(found) <= MAX_OPERATIONS and len(entering) < 2:
            operation = pending.pop()
            if id(operation) in found:
                continue
            found[id(operation)] = operation
            for value in operation.operands:
                made = self._made_by.get(value)
                if value == argument or value in self._constants:
                    continue
                if made is None or made.opcode not in _EVALUATED:
                    entering[value] = None
                else:
                    pending.append(made)
        complete = not pending
        return (list(found.values()), list(entering)) if complete else ([], [])

    def _evaluate(
        self, operations: Sequence[Operation], last: Operation, inputs: Mapping[int, Samples]
    ) -> Samples:
        values: dict[int, Samples] = dict(inputs)
        chosen = {id(op) for op in operations}
        with np.errstate(all="ignore"):
            for operation in self._in_order(last, chosen, set(inputs)):
                operands = [self._sample(value, values) for value in operation.operands]
                result = operation.results[0]
                values[result] = _as_type(_value(operation, operands), self._module.values[result].type.dtype)
        return values[last.results[0]]

    def _sample(self, value: int, values: Mapping[int, Samples]) -> Samples:
        if value in values:
            return values[value]
        return np.full(len(_AT), self._constants[value])

    def _in_order(self, last: Operation, chosen: set[int], inputs: set[int]) -> list[Operation]:
        """The chosen operations, operands before users."""
        order: dict[int, Operation] = {}

        def visit(operation: Operation) -> None:
            for value in operation.operands:
                made = self._made_by.get(value)
                if value not in inputs and made is not None and id(made) in chosen and id(made) not in order:
                    visit(made)
            order[id(operation)] = operation

        visit(last)
        return list(order.values())


def _value(operation: Operation, operands: Sequence[Samples]) -> Samples:
    if operation.opcode == "compare":
        return _COMPARISONS[operation.attributes["comparison_direction"]](*operands)
    return _EVALUATED[operation.opcode](*operands)


def _as_type(value: Samples, dtype: str) -> Samples:
    """What an element type holds of values: truth as 0 and 1, whole numbers, or all of them."""
    if dtype in ("i1", "pred"):
        return np.not_equal(value, 0).astype(np.float64)
    whole = dtype.startswith(("i", "ui", "si"))
    return np.trunc(value) if whole else value


def _named(value: Samples, functions: Mapping[str, Samples]) -> str | None:
    """The function that has these values."""
    for name, expected in functions.items():
        error = np.abs(value - expected)
        if np.all(error <= TOLERANCE * np.maximum(1.0, np.abs(expected))):
            return name
    return None
