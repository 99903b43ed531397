"""Scatters and gathers whose indices count: they write windows, or read a part of an axis.

PyTorch's `index_copy_` along an inner axis arrives as one index per element, put together from the places
along that axis and an iota for each other axis. What an iota counts through is a window. An `index_select`
by an `arange` is a slice. One element a row in a tensor of equal numbers (the gradient of a loss of class
numbers) is a choice by place, which joins what is computed with it: nothing goes through HBM.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from neuron_tools.compiler.graph import Rewriter, producers
from neuron_tools.compiler.hlo import Module, Operation, TensorType
from neuron_tools.compiler.views import Layout, Views, contiguous

_NUMBERS = "scatter_dimension_numbers"


def recognise_windows(module: Module) -> Module:
    """See the module's text. Other scatters and gathers are kept."""
    if not any(operation.opcode in ("scatter", "gather") for operation in module.operations):
        return module
    return _Recogniser(module).run()


class _Recogniser:
    def __init__(self, module: Module) -> None:
        self._module = module
        self._made_by = producers(module)
        self._views = Views(module, self._made_by)
        self._rewriter = Rewriter(module)

    def run(self) -> Module:
        """Rewrite all operations in order."""
        for operation in self._module.operations:
            if operation.opcode == "scatter" and self._chooses_by_place(operation):
                continue
            windows = self._windows(operation) if operation.opcode == "scatter" else {}
            kept = self._with_windows(operation, windows) if windows else operation
            self._rewriter.operations.append(self._as_slice(operation) or kept)
        return self._rewriter.finish()

    def _chooses_by_place(self, scatter: Operation) -> bool:
        """Emit a scatter of one element a row into equal numbers as a choice; False where it is none."""
        operand, _, update = scatter.operands[:3]
        found = self._row_places(scatter)
        if found is None or not self._is_number(operand) or not _keeps_update(scatter):
            return False
        axis, place = found
        shape = self._module.shape_of(operand)
        index = self._spread(place, axis, shape, scatter)
        type_ = self._rewriter.type_of(index)
        counted = self._rewriter.add("iota", (), type_, scatter, iota_dimension=axis)
        is_place = self._rewriter.add(
            "compare", (counted, index), replace(type_, dtype="i1"), scatter,
            comparison_direction="EQ", compare_type="SIGNED",
        )  # fmt: skip
        chosen = is_place, self._spread(update, axis, shape, scatter), operand
        self._rewriter.operations.append(
            replace(scatter, opcode="select", operands=chosen, attributes={}, regions=())
        )
        return True

    def _row_places(self, scatter: Operation) -> tuple[int, int] | None:
        """(axis, places along it) of a scatter of one element in each row along an axis."""
        shape, written = (self._module.shape_of(scatter.operands[side]) for side in (0, 2))
        dimensions, places = [], []
        for axis, value in sorted(self._pieces(scatter)):
            layout = self._views.layout(value)
            dimension = _counted(layout)
            if dimension is not None and layout.dims[dimension] == ((shape[axis], 1),):
                dimensions.append(dimension)
            else:
                places.append((axis, value))
        if len(places) != 1 or dimensions != sorted(set(dimensions)):
            return None
        rows = math.prod(shape) // max(1, shape[places[0][0]])
        return places[0] if math.prod(written) == rows else None

    def _spread(self, value: int, along: int, shape: Sequence[int], like: Operation) -> int:
        """A value of one element a row, over whole rows along an axis."""
        dtype = self._rewriter.type_of(value).dtype
        axes = tuple(axis for axis in range(len(shape)) if axis != along)
        rows = TensorType(tuple(shape[axis] for axis in axes), dtype)
        each = self._rewriter.add("reshape", (value,), rows, like)
        whole = TensorType(tuple(shape), dtype)
        return self._rewriter.add("broadcast_in_dim", (each,), whole, like, broadcast_dimensions=axes)

    def _is_number(self, value: int) -> bool:
        made = self._made_by.get(value)
        return (
            made is not None
            and made.opcode == "constant"
            and isinstance(made.attributes.get("value"), (int, float, bool))
        )

    def _as_slice(self, operation: Operation) -> Operation | None:
        """The slice that a gather is which counts along one axis and takes all of the others."""
        if operation.opcode != "gather" or not self._counts_along_axis(operation):
            return None
        shape = self._module.shape_of(operation.operands[0])
        limits = self._module.shape_of(operation.results[0])
        attributes = {
            "start_indices": (0,) * len(shape), "limit_indices": limits, "strides": (1,) * len(shape),
        }  # fmt: skip
        return replace(operation, opcode="slice", operands=operation.operands[:1], attributes=attributes)

    def _counts_along_axis(self, gather: Operation) -> bool:
        numbers = gather.attributes.get("dimension_numbers", {})
        table, made = (self._module.shape_of(value) for value in (gather.operands[0], gather.results[0]))
        axes = tuple(numbers.get("start_index_map", ()))
        collapsed = tuple(numbers.get("collapsed_slice_dims", ()))
        if len(axes) != 1 or collapsed != axes or len(made) != len(table):
            return False
        others = tuple(axis for axis in range(len(table)) if axis not in axes)
        whole = tuple(1 if axis in axes else extent for axis, extent in enumerate(table))
        layout = self._views.layout(gather.operands[1])
        return (
            tuple(gather.attributes.get("slice_sizes", ())) == whole
            and tuple(numbers.get("offset_dims", ())) == others
            and _counted(layout) is not None
            and layout.factors == ((made[axes[0]], 1),)
            and made[axes[0]] <= table[axes[0]]
        )

    def _pieces(self, operation: Operation) -> Iterator[tuple[int, int]]:
        """(axis of the operand, its indices) of a scatter of elements; nothing for others."""
        numbers = operation.attributes.get(_NUMBERS, {})
        if len(operation.operands) != 3 or numbers.get("update_window_dims"):
            return
        joined = self._made_by.get(operation.operands[1])
        axes = numbers.get("scatter_dims_to_operand_dims", ())
        last = numbers.get("index_vector_dim")
        if joined is None or joined.opcode != "concatenate" or joined.attributes.get("dimension") != last:
            return
        if len(joined.operands) == len(axes) == len(self._module.shape_of(operation.operands[0])):
            yield from zip(axes, joined.operands)

    def _windows(self, operation: Operation) -> dict[int, int]:
        """Axis of the operand -> dimension of the update that runs through all of it."""
        shape = self._module.shape_of(operation.operands[0])
        pieces = [(axis, self._views.layout(value)) for axis, value in self._pieces(operation)]
        windows: dict[int, int] = {}
        for axis, layout in pieces:
            dimension = _counted(layout)
            if dimension is not None and layout.dims[dimension] == ((shape[axis], 1),):
                windows[axis] = dimension
            elif _is_zero(layout) and self._module.shape_of(operation.operands[2])[axis : axis + 1] == (1,):
                windows[axis] = axis
        others = [layout for axis, layout in pieces if axis not in windows]
        varies = any(stride for layout in others for d in windows.values() for _, stride in layout.dims[d])
        ordered = [windows[axis] for axis in sorted(windows)]
        is_valid = bool(others) and not varies and ordered == sorted(set(ordered))
        return windows if is_valid else {}

    def _with_windows(self, operation: Operation, windows: Mapping[int, int]) -> Operation:
        """The scatter with one index vector for each window."""
        inside = sorted(windows.values())
        pieces = [(axis, value) for axis, value in self._pieces(operation) if axis not in windows]
        narrow = [self._first(value, inside, operation) for _, value in pieces]
        indices = narrow[0]
        if len(narrow) > 1:
            type_ = self._rewriter.type_of(indices)
            joined = TensorType((*type_.shape[:-1], len(narrow)), type_.dtype)
            last = len(type_.shape) - 1
            indices = self._rewriter.add("concatenate", narrow, joined, operation, dimension=last)
        numbers = {
            "update_window_dims": tuple(inside),
            "inserted_window_dims": tuple(sorted(axis for axis, _ in pieces)),
            "scatter_dims_to_operand_dims": tuple(axis for axis, _ in pieces),
            "index_vector_dim": len(self._rewriter.type_of(indices).shape) - 1,
        }
        operand, _, update = operation.operands
        return replace(
            operation,
            operands=(operand, indices, update),
            attributes={**operation.attributes, _NUMBERS: numbers},
        )

    def _first(self, value: int, dimensions: list[int], like: Operation) -> int:
        """Indices without dimensions along which they are all the same."""
        type_ = self._module.values[value].type
        narrow = TensorType(tuple(e for d, e in enumerate(type_.shape) if d not in dimensions), type_.dtype)
        layout = self._views.layout(value)
        kept = [factors for d, factors in enumerate(layout.dims) if d not in dimensions]
        if layout.root >= 0 and tuple(kept) == contiguous(narrow.shape):
            return self._rewriter.add("reshape", (layout.root,), narrow, like)
        limits = tuple(1 if d in dimensions else extent for d, extent in enumerate(type_.shape))
        zeros, ones = (0,) * len(limits), (1,) * len(limits)
        part = self._rewriter.add(
            "slice", (value,), TensorType(limits, type_.dtype), like,
            start_indices=zeros, limit_indices=limits, strides=ones,
        )  # fmt: skip
        return self._rewriter.add("reshape", (part,), narrow, like)


def _keeps_update(scatter: Operation) -> bool:
    """Whether a scatter writes its update as it is, whatever is there."""
    (region,) = scatter.regions or (None,)
    return region is not None and region.results == region.parameters[1:]


def _is_zero(layout: Layout) -> bool:
    """Whether a layout is the constant 0."""
    maker = layout.generator
    return maker is not None and maker.opcode == "constant" and maker.attributes.get("value") == 0


def _counted(layout: Layout) -> int | None:
    """The dimension along which a layout counts from 0 on; None where it does anything else."""
    if layout.generator is None or layout.generator.opcode != "iota":
        return None
    counted = [d for d, factors in enumerate(layout.dims) if any(stride for _, stride in factors)]
    starts_at_zero = all(operation.opcode != "slice" for operation in layout.path)
    return counted[0] if len(counted) == 1 and starts_at_zero else None
