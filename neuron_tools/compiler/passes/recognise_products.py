"""Recognises matrix x vector written as a multiplication and a sum, as lowering writes it.

sum(x * broadcast(v), last axis) contracts x with v: the Tensor engine does it while the bytes arrive, the
Vector engine would take several passes over every element.
"""

from __future__ import annotations

from dataclasses import replace

from neuron_tools.compiler.graph import Finder
from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.compiler.opcodes import ELEMENTWISE

MINIMUM_ELEMENTS = 1 << 16
"""Smaller sums are not worth a tile of the Tensor engine."""
_WIDENED = {"f32": ("bf16", "f16", "f32")}


def recognise_products(module: Module) -> Module:
    """Replace such sums by `dot_general`; the multiplication is dead code if nobody else reads it."""
    if not any(operation.opcode == "reduce" for operation in module.operations):
        return module
    finder = _Finder(module)
    operations = tuple(
        finder.product(operation) or operation if operation.opcode == "reduce" else operation
        for operation in module.operations
    )
    return replace(module, operations=operations)


class _Finder(Finder):
    def product(self, reduction: Operation) -> Operation | None:
        """The product that a sum is, or None."""
        shape = self._module.shape_of(reduction.operands[0])
        if not self._is_sum_of_rows(reduction, shape):
            return None
        multiplication = self._made_by.get(reduction.operands[0])
        if multiplication is None or multiplication.opcode != "multiply":
            return None
        if len(self._users.get(multiplication.results[0], ())) != 1:
            return None
        for matrix, vector in (multiplication.operands, multiplication.operands[::-1]):
            narrow = self._vector(vector, shape[-1])
            if narrow is not None and self._vector(matrix, shape[-1]) is None:
                return self._dot(reduction, multiplication, self._unwidened(matrix), self._unwidened(narrow))
        return None

    def _is_sum_of_rows(self, reduction: Operation, shape: tuple[int, ...]) -> bool:
        body = [inner.opcode for region in reduction.regions for inner in region.operations]
        count = self._module.values[reduction.operands[0]].type.element_count
        last = (len(shape) - 1,)
        return (
            body == ["add"]
            and len(shape) > 1
            and tuple(reduction.attributes.get("dimensions", ())) == last
            and count >= MINIMUM_ELEMENTS
        )

    def _vector(self, value: int, columns: int) -> int | None:
        """The vector that a value repeats for every row, or None."""
        operation = self._made_by.get(value)
        while operation is not None and operation.opcode == "convert":
            operation = self._made_by.get(operation.operands[0])
        if operation is None or operation.opcode != "broadcast_in_dim":
            return None
        source = operation.operands[0]
        dims = tuple(operation.attributes.get("broadcast_dimensions", ()))
        rank = len(self._module.shape_of(operation.results[0]))
        return source if self._module.shape_of(source) == (columns,) and dims == (rank - 1,) else None

    def _unwidened(self, value: int) -> int:
        """A value before it was widened: products widen their operands at no cost."""
        operation = self._made_by.get(value)
        if operation is None or operation.opcode != "convert":
            return value
        before, after = (self._module.values[v].type.dtype for v in (operation.operands[0], value))
        return operation.operands[0] if before in _WIDENED.get(after, ()) else value

    def _dot(
        self, reduction: Operation, multiplication: Operation, matrix: int, vector: int
    ) -> Operation | None:
        types = [self._module.values[value].type.dtype for value in (matrix, vector)]
        if types[0] != types[1] or types[0] not in _WIDENED["f32"]:
            return None
        maker = self._made_by.get(matrix)
        if maker is not None and maker.opcode in ELEMENTWISE:
            return None  # the sum joins the loop that makes its operand, which then needs no memory
        numbers = {
            "lhs_contracting_dimensions": (len(self._module.shape_of(matrix)) - 1,),
            "rhs_contracting_dimensions": (0,),
        }
        framework = tuple(dict.fromkeys((*reduction.framework, *multiplication.framework)))
        attributes = {"dot_dimension_numbers": numbers}
        return Operation("dot_general", (matrix, vector), reduction.results, attributes, framework)
