"""Recognises attention: a product of queries and keys, a softmax of its rows, a product with values.

Such a block runs as one group: the scores of a tile of queries never leave the chip (Dao et al.,
FlashAttention). Where the mask is causal, what it hides is not computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from neuron_tools.compiler.graph import Finder
from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.compiler.opcodes import DROPOUT, ELEMENTWISE

MINIMUM_ROWS = 40
"""Fewer queries leave most of a 128 x 128 tile empty; other code serves them better."""
MINIMUM_COLUMNS = 40
"""Fewer keys make the softmax so quick that it is turned and copied more than it computes."""
MAXIMUM_DEPTH = 256
"""Contraction of the scores (head size) that two stationary tiles hold."""
HIDDEN_BELOW = -1e4
"""A score of this or less is taken to be hidden: its exponential is 0 in any 16-bit type."""
_MOVED = frozenset({"reshape", "convert", "broadcast_in_dim"})
_FLOATS = frozenset({"bf16", "f16", "f32"})


@dataclass(frozen=True)
class AttentionBlock:
    """One recognised block.

    Attributes:
        scores: The product of queries and keys.
        body: What makes weights of the scores, in order, and what follows from the rows' statistics; a
            causal select is left out.
        values: The product of weights and values.
        normalised: The division by the row sums; behind it stands at most a dropout, with its scale.
        scaled: The multiplication of the weights that a dropout left by a constant; None where there is none.
        is_causal: Column j is hidden from row i where j > i.
        replaced: All operations of the module that the block stands for.
    """

    scores: Operation
    body: tuple[Operation, ...]
    values: Operation
    normalised: Operation
    scaled: Operation | None
    is_causal: bool
    replaced: tuple[Operation, ...]


def find_attention(module: Module) -> tuple[AttentionBlock, ...]:
    """All attention blocks of a module that can run as one group."""
    if sum(operation.opcode == "dot_general" for operation in module.operations) < 2:
        return ()
    finder = _Finder(module)
    found = (finder.block(operation) for operation in module.operations if operation.opcode == "dot_general")
    return tuple(block for block in found if block is not None)


class _Finder(Finder):
    def block(self, values: Operation) -> AttentionBlock | None:
        """The block that ends in a product, or None."""
        scaled, weights = self._before_dropout(self._maker(values.operands[0]))
        if weights is None or weights.opcode != "divide" or not self._contracts_rows(values):
            return None
        body = self._between(values.operands[0])
        scores = next((operation for operation in body if operation.opcode == "dot_general"), None)
        if scores is None or not self._is_softmax(body, scores, weights):
            return None
        if not self._stays_inside(body, values):
            return None
        inner = tuple(operation for operation in body if operation is not scores)
        hidden = next((operation for operation in inner if self._hides_the_future(operation)), None)
        rows = self._of_rows(body)
        replaced = (*body, *rows, values)
        if hidden is not None and self._is_first_use(hidden, inner):
            kept = _without(inner, hidden)
            scores = replace(scores, framework=_joined(scores, hidden))
            return AttentionBlock(scores, (*kept, *rows), values, weights, scaled, True, replaced)
        return AttentionBlock(scores, (*inner, *rows), values, weights, scaled, False, replaced)

    def _before_dropout(self, weights: Operation | None) -> tuple[Operation | None, Operation | None]:
        """(multiplication by a constant, what makes the weights that a dropout is given), where there are."""
        scaled = weights if weights is not None and self._is_scaled(weights) else None
        maker = self._maker(scaled.operands[0]) if scaled is not None else weights
        if maker is None or maker.opcode != DROPOUT:
            return None, weights
        return scaled, self._maker(maker.operands[0])

    def _is_scaled(self, operation: Operation) -> bool:
        """Whether an operation multiplies its first operand by one number."""
        if operation.opcode != "multiply":
            return False
        factor = self._made_by.get(operation.operands[1])
        return factor is not None and isinstance(factor.attributes.get("value"), (int, float))

    def _of_rows(self, body: Sequence[Operation]) -> tuple[Operation, ...]:
        """What follows from the rows' statistics alone, as the logarithms of the sums that training keeps."""
        made = {
            value for operation in body if operation.opcode == "reduce" for value in operation.results[:1]
        }
        made |= {
            operation.results[0]
            for operation in body
            if operation.opcode in ("reshape", "convert") and operation.operands[0] in made
        }
        inside, found = {id(operation) for operation in body}, []
        for operation in self._module.operations:
            follows = operation.opcode in ELEMENTWISE | {"reshape", "convert"} and made.issuperset(
                operation.operands
            )
            if follows and operation.operands and id(operation) not in inside:
                found.append(operation)
                made.add(operation.results[0])
        return tuple(found)

    def _maker(self, value: int) -> Operation | None:
        """What makes a value, seen through reshapes and conversions."""
        operation = self._made_by.get(value)
        while operation is not None and operation.opcode in ("reshape", "convert"):
            operation = self._made_by.get(operation.operands[0])
        return operation

    def _contracts_rows(self, values: Operation) -> bool:
        """Whether the weights' last axis is contracted and all but one of the others are batch axes."""
        numbers = values.attributes.get("dot_dimension_numbers", {})
        rank = len(self._module.shape_of(values.operands[0]))
        batching = numbers.get("lhs_batching_dimensions", ())
        return (
            numbers.get("lhs_contracting_dimensions", ()) == (rank - 1,)
            and batching == tuple(range(rank - 2))
            and len(self._module.shape_of(values.results[0])) == rank
        )

    def _between(self, value: int) -> list[Operation]:
        """Operations that depend on a product and lead to a value, in the module's order."""
        found: dict[int, Operation] = {}
        pending, seen = [value], set()
        while pending:
            operation = self._made_by.get(pending.pop())
            if operation is None or id(operation) in seen:
                continue
            seen.add(id(operation))
            found[id(operation)] = operation
            if operation.opcode != "dot_general":
                pending.extend(operation.operands)
        ordered = [operation for operation in self._module.operations if id(operation) in found]
        return self._that_depend_on_product(ordered)

    @staticmethod
    def _that_depend_on_product(operations: Sequence[Operation]) -> list[Operation]:
        reached: set[int] = set()
        kept: list[Operation] = []
        for operation in operations:
            if operation.opcode == "dot_general" or not reached.isdisjoint(operation.operands):
                reached.update(operation.results)
                kept.append(operation)
        return kept

    def _is_softmax(self, body: Sequence[Operation], scores: Operation, weights: Operation) -> bool:
        """Whether all is elementwise but one row maximum and one row sum, and sizes and types fit."""
        if sum(operation.opcode == "dot_general" for operation in body) != 1:
            return False
        shape = self._module.shape_of(scores.results[0])
        rows, columns = (shape[-2], shape[-1]) if len(shape) > 2 else (0, 0)
        if rows < MINIMUM_ROWS or columns < MINIMUM_COLUMNS or not self._scores_fit(scores):
            return False
        reductions = [operation for operation in body if operation.opcode == "reduce"]
        kinds = [inner.opcode for operation in reductions for region in operation.regions
                 for inner in region.operations]  # fmt: skip
        if kinds != ["maximum", "add"] or not all(self._reduces_rows(item, columns) for item in reductions):
            return False
        after = body[body.index(weights) + 1 :]
        allowed = ELEMENTWISE | _MOVED | {"reduce", "dot_general"}
        return all(operation.opcode in allowed for operation in body) and all(
            operation.opcode in ("reshape", "convert", DROPOUT) or self._is_scaled(operation)
            for operation in after
        )

    def _scores_fit(self, scores: Operation) -> bool:
        numbers = scores.attributes.get("dot_dimension_numbers", {})
        left, right = (self._module.values[value].type for value in scores.operands)
        depth = math.prod(left.shape[axis] for axis in numbers.get("lhs_contracting_dimensions", ()))
        batching = numbers.get("lhs_batching_dimensions", ())
        return (
            left.dtype == right.dtype
            and left.dtype in _FLOATS
            and depth <= MAXIMUM_DEPTH
            and batching == tuple(range(len(self._module.shape_of(scores.results[0])) - 2))
        )

    def _reduces_rows(self, operation: Operation, columns: int) -> bool:
        shape = self._module.shape_of(operation.operands[0])
        return tuple(operation.attributes.get("dimensions", ())) == (len(shape) - 1,) and shape[-1] == columns

    def _stays_inside(self, body: Sequence[Operation], values: Operation) -> bool:
        """Whether nobody else reads the scores or the weights; row statistics may be read."""
        inside = {id(operation) for operation in (*body, values)}
        count = self._module.values[body[0].results[0]].type.element_count
        for operation in body:
            for value in operation.results:
                if self._module.values[value].type.element_count < count:
                    continue
                read = self._users.get(value, ())
                if value in self._module.results or any(id(user) not in inside for user in read):
                    return False
        return True

    def _hides_the_future(self, operation: Operation) -> bool:
        """select(row >= column, score, -inf): what comes later is hidden."""
        if operation.opcode != "select":
            return False
        hidden = self._made_by.get(operation.operands[2])
        if hidden is None or hidden.opcode != "constant":
            return False
        number = hidden.attributes.get("value")
        if not isinstance(number, (int, float)) or number > HIDDEN_BELOW:
            return False
        test = self._through_movement(operation.operands[0])
        if test is None or test.opcode != "compare":
            return False
        axes = [self._counted_axis(value) for value in test.operands]
        direction = test.attributes.get("comparison_direction")
        return (direction, *axes) in (("GE", -2, -1), ("LE", -1, -2))

    def _through_movement(self, value: int) -> Operation | None:
        operation = self._made_by.get(value)
        while operation is not None and operation.opcode in _MOVED:
            operation = self._made_by.get(operation.operands[0])
        return operation

    def _counted_axis(self, value: int) -> int | None:
        """The axis, from the last, along which a value counts 0, 1, 2, ...; None if it does not."""
        rank = len(self._module.shape_of(value))
        operation = self._made_by.get(value)
        placed: tuple[int, ...] = tuple(range(rank))
        if operation is not None and operation.opcode == "broadcast_in_dim":
            placed = tuple(operation.attributes.get("broadcast_dimensions", ()))
            operation = self._made_by.get(operation.operands[0])
        if operation is None or operation.opcode != "iota":
            return None
        return placed[int(operation.attributes.get("iota_dimension", 0))] - rank

    @staticmethod
    def _is_first_use(hidden: Operation, inner: Iterable[Operation]) -> bool:
        """Whether nothing was reduced before the select: hidden scores then count for nothing."""
        for operation in inner:
            if operation is hidden:
                return True
            if operation.opcode == "reduce":
                return False
        return False


def _without(operations: Sequence[Operation], hidden: Operation) -> tuple[Operation, ...]:
    """The operations with a select taken out: its result is its second operand."""
    alias: Mapping[int, int] = {hidden.results[0]: hidden.operands[1]}
    return tuple(
        replace(operation, operands=tuple(alias.get(value, value) for value in operation.operands))
        for operation in operations
        if operation is not hidden
    )


def _joined(first: Operation, second: Operation) -> tuple[int, ...]:
    return tuple(dict.fromkeys((*first.framework, *second.framework)))
