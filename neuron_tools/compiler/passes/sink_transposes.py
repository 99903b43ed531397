"""Moves transposes behind the elementwise operations that follow them.

An elementwise operation on transposed operands is the transpose of the same operation on the operands as
they lie in memory. There it can join the product that made them, and the products that read the result
turn it on the way. Broadcasts and splat constants beside the transposed operands are made in the other
order. So are rows that are chosen from a transposed table: few of them, or those that are turned back at
once, as in the backward pass of products with chosen weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from neuron_tools.compiler.graph import OrderedPass, users
from neuron_tools.compiler.hlo import Module, Operation, TensorType
from neuron_tools.compiler.opcodes import ELEMENTWISE

SUNK_THROUGH = ELEMENTWISE | {"slice", "concatenate"}
"""Operations that transposes move behind."""
_PER_AXIS = {"slice": ("start_indices", "limit_indices", "strides"), "gather": ("slice_sizes",)}


def sink_transposes(module: Module) -> Module:
    """See the module's text. Transposes of one axis order only; other operations are kept."""
    if not any(operation.opcode == "transpose" for operation in module.operations):
        return module
    return _Sinker(module).run()


class _Sinker(OrderedPass):
    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self._turned = {
            value
            for value, readers in users(module).items()
            if all(reader.opcode == "transpose" for reader in readers)
        } - set(module.results)

    def _rewritten(self, operation: Operation) -> Operation | None:
        return None if self._sink(operation) else operation

    def _shape(self, value: int) -> tuple[int, ...]:
        return self._rewriter.type_of(value).shape

    def _sink(self, operation: Operation) -> bool:
        """Replace an operation by itself on untransposed operands and a transpose; False if it must stay."""
        if operation.regions or len(operation.results) != 1 or not operation.operands:
            return False
        if operation.opcode == "gather":
            return self._sink_through_gather(operation)
        if operation.opcode not in SUNK_THROUGH:
            return False
        order = self._order(operation)
        if order is None:
            return False
        operands = [self._untransposed(value, order) for value in operation.operands]
        if any(value is None for value in operands):
            return False
        self._replace(operation, [value for value in operands if value is not None], order)
        return True

    def _sink_through_gather(self, gather: Operation) -> bool:
        """The same where rows of a table's first axis are chosen, which the transpose leaves where it is.

        More rows than the table has stay behind the transpose, unless they are turned back.
        """
        table, chosen = self._made_by.get(gather.operands[0]), gather.results[0]
        if table is None or table.opcode != "transpose":
            return False
        order = tuple(table.attributes["permutation"])
        is_shorter = self._shape(chosen)[0] < self._shape(gather.operands[0])[0]
        if order[0] or not (is_shorter or chosen in self._turned) or not _chooses_rows(gather, len(order)):
            return False
        self._replace(gather, [table.operands[0], gather.operands[1]], order)
        return True

    def _order(self, operation: Operation) -> tuple[int, ...] | None:
        """The permutation of the first transposed operand, if it is an operand of full size."""
        for value in operation.operands:
            maker = self._made_by.get(value)
            if maker is not None and maker.opcode == "transpose":
                return tuple(maker.attributes["permutation"])
        return None

    def _untransposed(self, value: int, order: Sequence[int]) -> int | None:
        """What a value is the transpose of: known, or made in the other order; None if it cannot be."""
        maker = self._made_by.get(value)
        if len(self._shape(value)) != len(order):
            return value if not self._shape(value) else None
        if maker is None:
            return None
        if maker.opcode == "transpose":
            return maker.operands[0] if tuple(maker.attributes["permutation"]) == tuple(order) else None
        if maker.opcode == "broadcast_in_dim":
            return self._broadcast(maker, self._before(value, order), order)
        if maker.opcode == "constant" and isinstance(maker.attributes.get("value"), (int, float, bool)):
            attributes = dict(maker.attributes)
            return self._rewriter.add("constant", (), self._before(value, order), maker, **attributes)
        return None

    def _broadcast(self, maker: Operation, type_: TensorType, order: Sequence[int]) -> int | None:
        """The same broadcast to the other order; axes of one element may go where they are."""
        dims = [order[axis] for axis in maker.attributes.get("broadcast_dimensions", ())]
        source = maker.operands[0]
        if dims != sorted(dims):
            narrow = self._rewriter.type_of(source)
            kept = [place for place, extent in enumerate(narrow.shape) if extent > 1]
            dims = [dims[place] for place in kept]
            if dims != sorted(dims):
                return None
            shape = tuple(narrow.shape[place] for place in kept)
            source = self._rewriter.add("reshape", (source,), replace(narrow, shape=shape), maker)
        return self._rewriter.add(
            "broadcast_in_dim", (source,), type_, maker, broadcast_dimensions=tuple(dims)
        )

    def _before(self, value: int, order: Sequence[int]) -> TensorType:
        """The type of what a value is the transpose of."""
        type_ = self._rewriter.type_of(value)
        shape = [0] * len(order)
        for axis, source in enumerate(order):
            shape[source] = type_.shape[axis]
        return replace(type_, shape=tuple(shape))

    def _replace(self, operation: Operation, operands: Sequence[int], order: Sequence[int]) -> None:
        result = operation.results[0]
        inner = self._rewriter.new_value(self._before(result, order))
        attributes = _reordered(operation, order)
        self._keep(replace(operation, operands=tuple(operands), results=(inner,), attributes=attributes))
        turned = Operation(
            "transpose", (inner,), (result,), {"permutation": tuple(order)}, operation.framework
        )
        self._keep(turned)


def _chooses_rows(gather: Operation, rank: int) -> bool:
    """Whether a gather has, for each index of a list, all behind the first axis of a table of that rank."""
    numbers = gather.attributes["dimension_numbers"]
    return (
        tuple(numbers.get("offset_dims", ())) == tuple(range(1, rank))
        and tuple(numbers.get("collapsed_slice_dims", ())) == (0,)
        and tuple(numbers.get("start_index_map", ())) == (0,)
    )


def _reordered(operation: Operation, order: Sequence[int]) -> dict[str, object]:
    """Attributes that speak of axes, for the operand's own order of axes."""
    attributes = dict(operation.attributes)
    if operation.opcode == "concatenate":
        attributes["dimension"] = order[int(operation.attributes["dimension"])]
    if operation.opcode in _PER_AXIS:
        for name in _PER_AXIS[operation.opcode]:
            values = [0] * len(order)
            for axis, source in enumerate(order):
                values[source] = operation.attributes[name][axis]
            attributes[name] = tuple(values)
    return attributes
