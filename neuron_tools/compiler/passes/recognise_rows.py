"""Recognises look-ups and updates of whole rows that are written element by element.

`torch.gather` and `scatter_add` take an index for each element; one that was expanded over the last axes
names the same row for all elements of it. Front ends then write each element's place as the index and
counters (iotas) of the last axes. One descriptor for each row takes the place of one for each element.
First axes that are counted through as well are batches, of rows or of look-ups within a row: nothing has to
write their counters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from neuron_tools.compiler.graph import OrderedPass
from neuron_tools.compiler.hlo import Module, Operation, TensorType
from neuron_tools.compiler.views import Layout, Views, contiguous
from neuron_tools.frozen import frozen

_NUMBERS = {"gather": "dimension_numbers", "scatter": "scatter_dimension_numbers"}
_COLLAPSED = {"gather": "collapsed_slice_dims", "scatter": "inserted_window_dims"}
_MAPPED = {"gather": "start_index_map", "scatter": "scatter_dims_to_operand_dims"}
_WINDOW = {"gather": "offset_dims", "scatter": "update_window_dims"}
_BATCHED = {
    "gather": ("operand_batching_dims", "start_indices_batching_dims"),
    "scatter": ("input_batching_dims", "scatter_indices_batching_dims"),
}


def recognise_rows(module: Module) -> Module:
    """Let gathers and scatters of single elements that lie in rows be those of rows."""
    if not any(operation.opcode in _NUMBERS for operation in module.operations):
        return module
    return _Rows(module).run()


@frozen
class _Elements:
    """A gather or scatter of single elements.

    Attributes:
        table, places: Shapes of what is read or updated, and of the elements.
        columns: The value that holds each axis's index, by axis of the table.
    """

    table: tuple[int, ...]
    places: tuple[int, ...]
    columns: Mapping[int, int]


class _Rows(OrderedPass):
    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self._views = Views(module, self._made_by)

    def _rewritten(self, operation: Operation) -> Operation | None:
        elements = self._elements(operation)
        if elements is None:
            return operation
        if count := self._row_axes(elements):
            return self._of_rows(operation, elements, count)
        if operation.opcode == "gather" and self._looks_into_rows(elements):
            return self._by_row(operation, elements)
        return operation

    def _looks_into_rows(self, elements: _Elements) -> bool:
        """Whether each element comes from its own row: only the last axis has an index that is looked up."""
        last = len(elements.table) - 1
        return len(elements.places) == last + 1 > 1 and self._batch_axes(elements, last) == last

    def _batch_axes(self, elements: _Elements, most: int) -> int:
        """How many of the first axes, of `most`, are counted through in the table as in the places."""
        for axis in range(most):
            size, rank = elements.table[axis], len(elements.places)
            is_counted = size == 1 or self._counts_only(elements.columns[axis], axis, rank)
            if size != elements.places[axis] or not is_counted:
                return axis
        return most

    def _counts_only(self, value: int, axis: int, rank: int) -> bool:
        strides = _strides(self._views.layout(value), rank)
        return (
            strides is not None
            and self._is_counter(value)
            and all((step != 0) == (place == axis) for place, step in enumerate(strides))
        )

    def _by_row(self, operation: Operation, elements: _Elements) -> Operation:
        """The look-up with its first axes as batches, and the last axis's index as it is."""
        last = len(elements.table) - 1
        batches = tuple(range(last))
        numbers = {
            **operation.attributes["dimension_numbers"],
            "collapsed_slice_dims": (last,), "start_index_map": (last,), "offset_dims": (),
            "operand_batching_dims": batches, "start_indices_batching_dims": batches,
        }  # fmt: skip
        operands = (operation.operands[0], elements.columns[last])
        return replace(
            operation, operands=operands, attributes={**operation.attributes, "dimension_numbers": numbers}
        )

    def _elements(self, operation: Operation) -> _Elements | None:
        numbers = operation.attributes.get(_NUMBERS.get(operation.opcode, ""))
        if not isinstance(numbers, Mapping) or len(operation.operands) != _operand_count(operation):
            return None
        types = self._rewriter
        table = types.type_of(operation.operands[0]).shape
        places = types.type_of(operation.operands[-1] if operation.opcode == "scatter"
                               else operation.results[0]).shape  # fmt: skip
        maker = self._made_by.get(operation.operands[1])
        axes = tuple(numbers.get(_MAPPED[operation.opcode], ()))
        is_single = tuple(numbers.get(_COLLAPSED[operation.opcode], ())) == tuple(range(len(table)))
        if maker is None or maker.opcode != "concatenate" or not is_single or len(axes) != len(table):
            return None
        joined = int(maker.attributes.get("dimension", 0))
        at_end = joined == len(places) == int(numbers.get("index_vector_dim", -1))
        if not at_end or len(maker.operands) != len(axes):
            return None
        return _Elements(table, places, dict(zip(axes, maker.operands)))

    def _row_axes(self, elements: _Elements) -> int:
        """How many of the last axes are counted through for each index of the others."""
        count = 0
        for axis in range(len(elements.table) - 1, 0, -1):
            place = len(elements.places) - 1 - count
            if place <= 0 or not self._counts(elements, axis, place):
                break
            count += 1
        return count

    def _counts(self, elements: _Elements, axis: int, place: int) -> bool:
        if elements.table[axis] != elements.places[place] or elements.table[axis] == 1:
            return False
        for other, value in elements.columns.items():
            strides = _strides(self._views.layout(value), len(elements.places))
            wanted = place if other == axis else -1
            if strides is None or (other == axis and not self._is_counter(value)):
                return False
            if other == axis and any(step for at, step in enumerate(strides) if at != place):
                return False
            if (strides[place] != 0) != (place == wanted):
                return False
        return True

    def _is_counter(self, value: int) -> bool:
        layout = self._views.layout(value)
        return layout.root < 0 and layout.generator is not None and layout.generator.opcode == "iota"

    def _of_rows(self, operation: Operation, elements: _Elements, count: int) -> Operation:
        kept = len(elements.table) - count
        outer = elements.places[: len(elements.places) - count]
        batches = self._batch_axes(elements, min(kept - 1, len(outer)))
        columns = [self._first(elements.columns[axis], outer, operation) for axis in range(batches, kept)]
        indices = columns[0]
        if len(columns) > 1:
            type_ = TensorType((*outer, len(columns)), self._rewriter.type_of(indices).dtype)
            indices = self._rewriter.add("concatenate", columns, type_, operation, dimension=len(outer))
        window = tuple(range(len(outer), len(elements.places)))
        attributes = _with_rows(operation, range(batches, kept), window, elements.table, len(outer))
        operands = (operation.operands[0], indices, *operation.operands[2:])
        return replace(operation, operands=operands, attributes=attributes)

    def _first(self, value: int, outer: Sequence[int], like: Operation) -> int:
        """The indices of the first element of each row: shape (*outer, 1)."""
        layout, rewriter = self._views.layout(value), self._rewriter
        type_ = rewriter.type_of(value)
        first = layout.root if layout.root >= 0 else value
        is_expanded = (
            rewriter.type_of(first).dtype == type_.dtype
            and rewriter.type_of(first).element_count == math.prod(outer)
            and layout.dims[: len(outer)] == contiguous(outer)
        )
        if not is_expanded:
            limits = (*outer, *(1 for _ in type_.shape[len(outer) :]))
            first = rewriter.add(
                "slice", (value,), TensorType(limits, type_.dtype), like,
                start_indices=(0,) * len(limits), limit_indices=limits, strides=(1,) * len(limits),
            )  # fmt: skip
        return rewriter.add("reshape", (first,), TensorType((*outer, 1), type_.dtype), like)


def _operand_count(operation: Operation) -> int:
    return 3 if operation.opcode == "scatter" else 2


def _strides(layout: Layout, rank: int) -> list[int] | None:
    """Of each axis, how far its index goes on in memory; None where an axis has several factors."""
    if len(layout.dims) < rank or any(len(dim) > 1 for dim in layout.dims):
        return None
    return [dim[0][1] if dim else 0 for dim in layout.dims[:rank]]


def _with_rows(
    operation: Operation, looked_up: range, window: tuple[int, ...], table: tuple[int, ...], vector: int
) -> dict[str, Any]:
    """The attributes of the same for windows that reach over the last axes; the first ones are batches."""
    opcode = operation.opcode
    numbers = {
        **operation.attributes[_NUMBERS[opcode]],
        _COLLAPSED[opcode]: tuple(looked_up),
        _MAPPED[opcode]: tuple(looked_up),
        _WINDOW[opcode]: window,
        **dict.fromkeys(_BATCHED[opcode] if looked_up.start else (), tuple(range(looked_up.start))),
        "index_vector_dim": vector,
    }
    attributes = {**operation.attributes, _NUMBERS[opcode]: numbers}
    if opcode == "gather":
        attributes["slice_sizes"] = (*(1 for _ in range(looked_up.stop)), *table[looked_up.stop :])
    return attributes
