"""Turns what is reduced twice over an axis that is not the innermost, so that one pass over rows does it.

A softmax or a norm over such an axis has a reduction that needs the result of another one. Over the rows
of a loop each is complete only when all rows have been seen, which is a pass over memory each, with the
elements between them stored and loaded. Along the columns all of it is one pass; that is worth a
transpose before and one behind.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from neuron_tools.compiler.graph import Rewriter, operands_of, producers
from neuron_tools.compiler.hlo import Module, Operation, TensorType
from neuron_tools.compiler.opcodes import ELEMENTWISE, ROTATION
from neuron_tools.frozen import frozen

_THROUGH = ELEMENTWISE | {"broadcast_in_dim", "reshape"}
LEAST_ROWS = 64
LEAST_INNER = 64
"""Fewer rows or inner positions make descriptors so short that turning takes longer than it saves."""


@frozen
class Axis:
    """An axis of a shape, neither the innermost nor short: outer x rows x inner."""

    shape: tuple[int, ...]
    axis: int

    @property
    def sizes(self) -> tuple[int, int, int]:
        """(outer, rows, inner) extents."""
        before, after = self.shape[: self.axis], self.shape[self.axis + 1 :]
        return math.prod(before), self.shape[self.axis], math.prod(after)

    @property
    def turned_shape(self) -> tuple[int, ...]:
        """The shape with the axis as the innermost one."""
        return (*self.shape[: self.axis], *self.shape[self.axis + 1 :], self.shape[self.axis])

    def place(self, dimension: int) -> int:
        """Where a dimension other than the axis goes."""
        return dimension - (dimension > self.axis)


@dataclass(slots=True)
class Cluster:
    """Operations over one axis that depend on one another.

    Attributes:
        reductions: Results of the reductions.
        inside: Results of the elementwise operations between and behind them.
    """

    reductions: set[int] = field(default_factory=set)
    inside: set[int] = field(default_factory=set)


def turn_reductions(module: Module) -> Module:
    """See the module's text. Reductions that nobody waits for stay as they are."""
    clusters = _find_clusters(module)
    return _Turner(module, clusters).run() if clusters else module


def reduced_axis(operation: Operation, module: Module) -> Axis | None:
    """The axis of a reduction that may be turned; None for others."""
    if operation.opcode != "reduce" or len(operation.results) != 1:
        return None
    dimensions = tuple(operation.attributes.get("dimensions", ()))
    shape = module.shape_of(operation.operands[0])
    if len(dimensions) != 1 or dimensions[0] == len(shape) - 1:
        return None
    found = Axis(shape, dimensions[0])
    _, rows, inner = found.sizes
    return found if rows >= LEAST_ROWS and inner >= LEAST_INNER else None


def _find_clusters(module: Module) -> dict[Axis, Cluster]:
    """The reductions that wait for one another, by axis, and what is to be turned with them."""
    needs: dict[int, frozenset[int]] = {}
    axes: dict[int, Axis] = {}
    clusters: dict[Axis, Cluster] = {}
    for operation in module.operations:
        before = frozenset[int]().union(*(needs.get(value, ()) for value in operation.operands))
        axis = reduced_axis(operation, module)
        if axis is not None:
            result = operation.results[0]
            earlier = {other for other in before if axes[other] == axis}
            axes[result], before = axis, before | {result}
            if earlier:
                clusters.setdefault(axis, Cluster()).reductions |= {*earlier, result}
        elif operation.regions or operation.opcode not in _THROUGH:
            continue
        if before:
            needs.update(dict.fromkeys(operation.results, before))
    for axis, cluster in clusters.items():
        cluster.inside = _inside(module, axis, cluster, needs)
    return clusters


def _inside(module: Module, axis: Axis, cluster: Cluster, needs: Mapping[int, frozenset[int]]) -> set[int]:
    """Elementwise results that read what a reduction made, or lie between two of them."""
    leading = _leading(module, axis, cluster)
    made_by = producers(module)
    found: set[int] = set()
    for operation in module.operations:
        if not _is_elementwise(operation, module, axis.shape):
            continue
        makers = (made_by.get(value) for value in operation.operands)
        reads_row = any(
            maker is not None
            and maker.opcode == "broadcast_in_dim"
            and not cluster.reductions.isdisjoint(needs.get(maker.results[0], ()))
            for maker in makers
        )
        follows = not found.isdisjoint(operation.operands)
        result = operation.results[0]
        if reads_row or (follows and (result in leading or operation.opcode == "convert")):
            found.add(result)
    return found


def _leading(module: Module, axis: Axis, cluster: Cluster) -> set[int]:
    """Values from which a reduction of the cluster follows elementwise."""
    found: set[int] = set()
    for operation in reversed(module.operations):
        reduces = not cluster.reductions.isdisjoint(operation.results)
        passes_on = not found.isdisjoint(operation.results) and _is_elementwise(operation, module, axis.shape)
        if reduces or passes_on:
            found.update(operation.operands)
    return found


def _is_elementwise(operation: Operation, module: Module, shape: tuple[int, ...]) -> bool:
    return (
        operation.opcode in ELEMENTWISE - {ROTATION}
        and len(operation.results) == 1
        and module.shape_of(operation.results[0]) == shape
    )


class _Turner:
    """Rewrites the operations of clusters on turned operands; others read their results turned back."""

    def __init__(self, module: Module, clusters: Mapping[Axis, Cluster]) -> None:
        self._rewriter = Rewriter(module)
        self._made_by = producers(module)
        self._axis_of = {
            result: axis
            for axis, cluster in clusters.items()
            for result in (*cluster.reductions, *cluster.inside)
        }
        self._turned: dict[tuple[int, Axis], int] = {}

    def run(self) -> Module:
        """Rewrite all operations in order."""
        for operation in self._rewriter.module.operations:
            axis = self._axis_of.get(operation.results[0]) if operation.results else None
            if axis is None:
                self._turn_back(operands_of(operation))
                self._rewriter.operations.append(self._rewriter.renamed(operation))
            elif operation.opcode == "reduce":
                self._reduce(operation, axis)
            else:
                self._compute(operation, axis)
        self._turn_back(self._rewriter.module.results)
        return self._rewriter.finish()

    def _reduce(self, operation: Operation, axis: Axis) -> None:
        data, initial = operation.operands
        turned = replace(
            operation,
            operands=(self._turn(data, axis, operation), self._rewriter.resolve(initial)),
            attributes={**operation.attributes, "dimensions": (len(axis.shape) - 1,)},
        )
        self._rewriter.operations.append(turned)

    def _compute(self, operation: Operation, axis: Axis) -> None:
        operands = tuple(self._turn(value, axis, operation) for value in operation.operands)
        result = self._rewriter.new_value(self._type(operation.results[0], axis))
        self._rewriter.operations.append(replace(operation, operands=operands, results=(result,)))
        self._turned[operation.results[0], axis] = result

    def _type(self, value: int, axis: Axis) -> TensorType:
        return TensorType(axis.turned_shape, self._rewriter.type_of(value).dtype)

    def _turn(self, value: int, axis: Axis, reader: Operation) -> int:
        """The value with the axis innermost; scalars stay as they are."""
        if self._rewriter.type_of(value).shape != axis.shape:
            return self._rewriter.resolve(value)
        turned = self._turned.get((value, axis))
        if turned is None:
            turned = self._made_turned(value, axis)
        if turned is None:
            self._turn_back((value,))  # where it was made in the order of another axis
            turned = self._moved(value, axis, reader)
        self._turned[value, axis] = turned
        return turned

    def _made_turned(self, value: int, axis: Axis) -> int | None:
        """A value that its maker can make in the other order; None where it has to be moved."""
        maker = self._made_by.get(value)
        if maker is None or maker.regions:
            return None
        made = self._type(value, axis)
        if maker.opcode == "convert":
            return self._rewriter.add("convert", (self._turn(maker.operands[0], axis, maker),), made, maker)
        if maker.opcode == "constant" and isinstance(maker.attributes.get("value"), (int, float, bool)):
            return self._rewriter.add("constant", (), made, maker, **maker.attributes)
        if maker.opcode != "broadcast_in_dim":
            return None
        dimensions = maker.attributes.get("broadcast_dimensions", ())
        if axis.axis in dimensions:
            return None
        placed = tuple(axis.place(dimension) for dimension in dimensions)
        operand = self._rewriter.resolve(maker.operands[0])
        return self._rewriter.add("broadcast_in_dim", (operand,), made, maker, broadcast_dimensions=placed)

    def _moved(self, value: int, axis: Axis, reader: Operation) -> int:
        """The value turned in memory, as matrices of rows x inner positions."""
        outer, rows, inner = axis.sizes
        made = self._transposed(self._rewriter.resolve(value), (outer, rows, inner), reader)
        return self._rewriter.add("reshape", (made,), self._type(value, axis), reader)

    def _transposed(self, value: int, sizes: tuple[int, int, int], like: Operation) -> int:
        dtype, (outer, rows, columns) = self._rewriter.type_of(value).dtype, sizes
        matrices = self._rewriter.add("reshape", (value,), TensorType(sizes, dtype), like)
        turned = TensorType((outer, columns, rows), dtype)
        return self._rewriter.add("transpose", (matrices,), turned, like, permutation=(0, 2, 1))

    def _turn_back(self, values: Iterable[int]) -> None:
        """Give results of a cluster that others read their own order in memory."""
        for value in values:
            axis = self._axis_of.get(value)
            turned = None if axis is None else self._turned.get((value, axis))
            if axis is None or turned is None or self._rewriter.resolve(value) != value:
                continue
            outer, rows, inner = axis.sizes
            maker = self._made_by[value]
            back = self._transposed(turned, (outer, inner, rows), maker)
            type_ = self._rewriter.type_of(value)
            self._rewriter.alias(value, self._rewriter.add("reshape", (back,), type_, maker))
