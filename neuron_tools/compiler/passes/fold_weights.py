"""Computes at compile time what depends on weights inside the artifact alone.

A batch norm at inference has a scale and a shift for each channel, made of four vectors that are known when
the model is compiled. What is computed is stored beside the weights, and takes no more room than they do, but
for rows that known places pick from a table (biases of relative positions). Places counted through in another
order than they lie in (windows of an image) are stored in that order.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from neuron_tools.compiler.graph import OrderedPass, operands_of
from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.compiler.opcodes import ELEMENTWISE
from neuron_tools.compiler.passes.dead_code import eliminate_dead_code
from neuron_tools.frozen import frozen

_MOVED = frozenset({"broadcast_in_dim", "reshape", "slice", "transpose", "concatenate", "pad", "reverse"})
_COMPUTED = ELEMENTWISE | {"convert", "reduce", "dot_general"}
_MOST_ELEMENTS = 45_000_000
"""Of rows that are stored: up to which XLA's `hlo_constant_folding` evaluates."""
_FLOATS = frozenset({"f32", "bf16", "f16", "f64"})


def fold_weights(module: Module) -> Module:
    """The module in which stored vectors stand for what was computed of weights.

    Vectors that one after the other scale and shift the same rows become one scale and one shift.
    """
    return eliminate_dead_code(_Affine(_Folded(module).run()).run())


class _WithWeights(OrderedPass):
    """Knows which values depend on weights and constants alone, and how many stored elements make each."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        weights = {
            value for value, kind in zip(module.parameters, module.parameter_kinds) if kind == "weight"
        }
        self._sizes = {value: self._count(value) for value in weights}

    def _count(self, value: int) -> int:
        return self._rewriter.type_of(value).element_count

    def _is_known(self, operation: Operation) -> bool:
        values = tuple(operands_of(operation))
        known = all(value in self._sizes for value in values)
        return known and len(operation.results) == 1 and operation.opcode in _MOVED | _COMPUTED | {"gather"}

    def _note(self, operation: Operation) -> None:
        """Remember what is known of an operation's result."""
        if operation.opcode == "constant":
            stored = operation.attributes.get("value") is None
            self._sizes[operation.results[0]] = self._count(operation.results[0]) if stored else 0
        elif operation.opcode == "iota":
            self._sizes[operation.results[0]] = 0
        elif self._is_known(operation):
            self._sizes[operation.results[0]] = sum(self._sizes[value] for value in operands_of(operation))

    def _stored(self, value: int) -> bool:
        return self._sizes.get(value, 0) > 0


class _Folded(_WithWeights):
    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self._folded: set[int] = set()

    def _rewritten(self, operation: Operation) -> Operation | None:
        self._note(operation)
        if not self._is_known(operation) or not self._is_worth_its_room(operation):
            return operation
        result = operation.results[0]
        self._sizes[result] = self._count(result)
        self._folded.add(result)
        return replace(operation, opcode="constant", operands=(), attributes={"value": None}, regions=())

    def _is_worth_its_room(self, operation: Operation) -> bool:
        result = operation.results[0]
        if operation.opcode == "gather":
            return self._stored(operation.operands[0]) and self._count(result) <= _MOST_ELEMENTS
        if operation.opcode == "transpose" and not self._stored(result):
            return self._count(result) <= _MOST_ELEMENTS
        moves_folded = operation.opcode in _MOVED and operation.operands[0] in self._folded
        computes = operation.opcode in _COMPUTED and self._stored(result)
        return (computes or moves_folded) and self._count(result) <= self._sizes[result]


@frozen
class _Scaled:
    """A value as `source` x `scale` + `shift`: vectors along the dimensions `along`, or none."""

    source: int
    along: tuple[int, ...]
    scale: int | None
    shift: int | None


class _Affine(_WithWeights):
    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self._scaled: dict[int, _Scaled] = {}
        self._uses = Counter(value for operation in module.operations for value in operands_of(operation))
        self._uses.update(module.results)

    def _rewritten(self, operation: Operation) -> Operation | None:
        self._note(operation)
        found = self._joined(operation)
        if found is None:
            return operation
        self._scaled[operation.results[0]] = found
        if found.scale is None or found.shift is None:
            return operation
        return self._emitted(found, operation)

    def _joined(self, operation: Operation) -> _Scaled | None:
        """An operation that scales or shifts by a stored vector, with what was done to its operand before."""
        if operation.opcode not in ("add", "subtract", "multiply"):
            return None
        if self._rewriter.type_of(operation.results[0]).dtype not in _FLOATS:
            return None
        value, vector = operation.operands
        if operation.opcode != "subtract" and self._vector(vector) is None:
            value, vector = vector, value
        spread = self._vector(vector)
        if spread is None or value in self._sizes:
            return None
        along = tuple(spread.attributes["broadcast_dimensions"])
        before = self._scaled.get(value, _Scaled(value, along, None, None))
        if before.along != along or (value in self._scaled and self._uses[value] != 1):
            before = _Scaled(value, along, None, None)
        return self._applied(operation, before, spread.operands[0])

    def _vector(self, value: int) -> Operation | None:
        """The broadcast that makes a value of a smaller stored one."""
        made = self._made_by.get(value)
        if made is None or made.opcode != "broadcast_in_dim" or not self._stored(made.operands[0]):
            return None
        return made if self._count(made.operands[0]) < self._count(value) else None

    def _applied(self, operation: Operation, before: _Scaled, vector: int) -> _Scaled:
        if operation.opcode == "multiply":
            scale = vector if before.scale is None else self._constant(before.scale, operation)
            shift = before.shift if before.shift is None else self._constant(before.shift, operation)
            return replace(before, scale=scale, shift=shift)
        if before.shift is None and operation.opcode == "add":
            return replace(before, shift=vector)
        return replace(before, shift=self._constant(vector, operation))

    def _constant(self, like: int, operation: Operation) -> int:
        """A stored vector of the same type."""
        value = self._rewriter.add("constant", (), self._rewriter.type_of(like), operation, value=None)
        self._sizes[value] = self._count(value)
        return value

    def _emitted(self, found: _Scaled, operation: Operation) -> Operation:
        """The operation as the last of a multiplication and an addition."""
        type_ = self._rewriter.type_of(operation.results[0])
        assert found.scale is not None
        assert found.shift is not None
        scale, shift = (self._spread(vector, found, operation) for vector in (found.scale, found.shift))
        product = self._rewriter.add("multiply", (found.source, scale), type_, operation)
        return replace(operation, opcode="add", operands=(product, shift))

    def _spread(self, vector: int, found: _Scaled, operation: Operation) -> int:
        value = self._rewriter.add(
            "broadcast_in_dim", (vector,), self._rewriter.type_of(operation.results[0]), operation,
            broadcast_dimensions=found.along,
        )  # fmt: skip
        self._made_by[value] = self._rewriter.operations[-1]
        return value
