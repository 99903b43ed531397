"""Strategies: the ways in which two cores can share one operation, by operation.

A value is *split* along an axis where each core has one half of it, *whole* where both can read all of it.
An operation that sums along the axis by which its operands are split leaves each core a *partial* result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from neuron_tools.compiler.graph import operands_of
from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.compiler.opcodes import (
    ATTENTION_GRADIENT,
    BARRIER,
    ELEMENTWISE,
    MAX_POOL_GRADIENT,
    ROTATION,
)
from neuron_tools.frozen import frozen

CORES = 2
WHOLE = -1
"""In the place of an axis: the value is not split."""
_COMBINING = frozenset({"add", "multiply", "maximum", "minimum", "and", "or"})


@frozen
class Strategy:
    """One way to share an operation.

    Attributes:
        operands: Axis along which each operand is split, or WHOLE; captured values of regions are whole.
        results: The same of each result.
        combine: Elementwise operation that makes the result of both cores' partial ones; "" where each core
            has its part of the result.
        is_shared: Whether each core does half of the work; else both do all of it.
    """

    operands: tuple[int, ...]
    results: tuple[int, ...]
    combine: str = ""
    is_shared: bool = True


Rule = Callable[[Operation, Module], Iterator[Strategy]]


def strategies(operation: Operation, module: Module) -> tuple[Strategy, ...]:
    """All ways to share an operation; the last one is that both cores do all of it."""
    rule = _elementwise if operation.opcode in ELEMENTWISE - {ROTATION} else _RULES.get(operation.opcode)
    found = tuple(rule(operation, module)) if rule is not None else ()
    return (*found, both_do_all(operation))


def both_do_all(operation: Operation) -> Strategy:
    """Nothing is split."""
    return Strategy((WHOLE,) * len(operation.operands), (WHOLE,) * len(operation.results), is_shared=False)


def can_split(shape: Sequence[int], axis: int) -> bool:
    """Whether an axis has two equal halves."""
    return 0 <= axis < len(shape) and shape[axis] >= CORES and shape[axis] % CORES == 0


def split_shape(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """What one core has of a shape."""
    if axis == WHOLE:
        return shape
    return (*shape[:axis], shape[axis] // CORES, *shape[axis + 1 :])


def widest_axis(shape: Sequence[int]) -> int:
    """The outermost of the axes that two cores can split best; WHOLE where there is none."""
    able = [axis for axis in range(len(shape)) if can_split(shape, axis)]
    return max(able, key=lambda axis: (shape[axis] > CORES, -axis), default=WHOLE)


def _axes(module: Module, value: int) -> Iterator[int]:
    shape = module.shape_of(value)
    return (axis for axis in range(len(shape)) if can_split(shape, axis))


def _elementwise(operation: Operation, module: Module) -> Iterator[Strategy]:
    shape = module.shape_of(operation.results[0])
    for axis in _axes(module, operation.results[0]):
        operands = (axis if module.shape_of(operand) == shape else WHOLE for operand in operation.operands)
        yield Strategy(tuple(operands), (axis,) * len(operation.results))


def _along_result(operand_axis: Callable[[Operation, Module, int], int | None]) -> Rule:
    """A rule for operations that only move their first operand: its axis for one of the result; None: no."""

    def rule(operation: Operation, module: Module) -> Iterator[Strategy]:
        for axis in _axes(module, operation.results[0]):
            found = operand_axis(operation, module, axis)
            if found is not None:
                others = (WHOLE,) * (len(operation.operands) - 1)
                yield Strategy((found, *others)[: len(operation.operands)], (axis,))

    return rule


def _broadcast(operation: Operation, module: Module, axis: int) -> int | None:
    placed = tuple(operation.attributes.get("broadcast_dimensions", ()))
    if axis not in placed:
        return WHOLE
    source = placed.index(axis)
    return source if module.shape_of(operation.operands[0])[source] > 1 else WHOLE


def _reshape(operation: Operation, module: Module, axis: int) -> int | None:
    before, after = module.shape_of(operation.operands[0]), module.shape_of(operation.results[0])
    outside = math.prod(after[:axis])
    for source in range(len(before)):
        if math.prod(before[:source]) == outside and can_split(before, source):
            return source
    return None


def _transpose(operation: Operation, module: Module, axis: int) -> int | None:
    return int(operation.attributes["permutation"][axis])


def _slice(operation: Operation, module: Module, axis: int) -> int | None:
    before, after = module.shape_of(operation.operands[0]), module.shape_of(operation.results[0])
    return axis if before[axis] == after[axis] and operation.attributes["strides"][axis] == 1 else None


def _pad(operation: Operation, module: Module, axis: int) -> int | None:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    moved = any(operation.attributes.get(name, (1,) * (axis + 1))[axis] for name in names)
    return None if moved else axis


def _reverse(operation: Operation, module: Module, axis: int) -> int | None:
    return None if axis in operation.attributes.get("dimensions", ()) else axis


def _dynamic_slice(operation: Operation, module: Module, axis: int) -> int | None:
    before, after = module.shape_of(operation.operands[0]), module.shape_of(operation.results[0])
    return axis if before[axis] == after[axis] else None


def _windows(operation: Operation, module: Module) -> Iterator[Strategy]:
    """By axes over which no window reaches; values may bring their places along."""
    count = len(operation.results)
    ones = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    sizes = [size for size in map(operation.attributes.get, ones) if size]
    padding = operation.attributes.get("padding") or ()
    for axis in _axes(module, operation.results[0]):
        if all(size[axis] == 1 for size in sizes) and not any(padding[2 * axis : 2 * axis + 2]):
            operands = (axis,) * count + (WHOLE,) * (len(operation.operands) - count)
            yield Strategy(operands, (axis,) * count)


def _pooling_gradient(operation: Operation, module: Module) -> Iterator[Strategy]:
    """By images or channels."""
    outer = len(module.shape_of(operation.results[0])) - len(operation.attributes["kernel"])
    for axis in _axes(module, operation.results[0]):
        if axis < outer:
            yield Strategy((axis,) * len(operation.operands), (axis,))


def _attention_gradient(operation: Operation, module: Module) -> Iterator[Strategy]:
    """By sequences or heads; what all of them share is whole, as is what the operation does not read."""
    read = [operation.operands[place] for place in operation.attributes["operands"] if place >= 0]
    for axis in (0, 1):
        sizes = {value: module.shape_of(value)[axis] for value in (*read, *operation.results)}
        split = {value for value, size in sizes.items() if size > 1}
        if split.issuperset(operation.results) and all(
            can_split(module.shape_of(each), axis) for each in split
        ):
            operands, results = (
                tuple(axis if value in split else WHOLE for value in values)
                for values in (operation.operands, operation.results)
            )
            yield Strategy(operands, results)


def _concatenate(operation: Operation, module: Module) -> Iterator[Strategy]:
    joined = int(operation.attributes.get("dimension", 0))
    for axis in _axes(module, operation.results[0]):
        if axis != joined:
            yield Strategy((axis,) * len(operation.operands), (axis,))


def _generated(operation: Operation, module: Module) -> Iterator[Strategy]:
    """Constants and iotas: nothing is read."""
    if isinstance(operation.attributes.get("value"), tuple):
        return
    for axis in _axes(module, operation.results[0]):
        yield Strategy((), (axis,))


def _reduce(operation: Operation, module: Module) -> Iterator[Strategy]:
    count = len(operation.results)
    reduced = set(operation.attributes.get("dimensions", ()))
    kept = [axis for axis in range(len(module.shape_of(operation.operands[0]))) if axis not in reduced]
    for axis in _axes(module, operation.operands[0]):
        operands = (axis,) * count + (WHOLE,) * (len(operation.operands) - count)
        if axis not in reduced:
            yield Strategy(operands, (kept.index(axis),) * count)
        elif count == 1 and _body(operation) in _COMBINING:
            yield Strategy(operands, (WHOLE,), _body(operation))


def _body(operation: Operation) -> str:
    """The one operation of a reduction's body; "" where there are more."""
    inner = operation.regions[0].operations if operation.regions else ()
    return inner[0].opcode if len(inner) == 1 else ""


def _dot(operation: Operation, module: Module) -> Iterator[Strategy]:
    numbers: Mapping[str, Sequence[int]] = operation.attributes.get("dot_dimension_numbers", {})
    left, right = (module.shape_of(operand) for operand in operation.operands)
    batch = _pairs(numbers, "batching")
    summed = _pairs(numbers, "contracting")
    for place, (mine, theirs) in enumerate(batch):
        if can_split(left, mine):
            yield Strategy((mine, theirs), (place,))
    place = len(batch)
    for side, shape, used in ((0, left, {*batch, *summed}), (1, right, {*batch, *summed})):
        taken = {pair[side] for pair in used}
        for axis in (axis for axis in range(len(shape)) if axis not in taken):
            if can_split(shape, axis):
                yield Strategy((axis, WHOLE) if side == 0 else (WHOLE, axis), (place,))
            place += 1
    for mine, theirs in summed:
        if can_split(left, mine):
            yield Strategy((mine, theirs), (WHOLE,), "add")


def _pairs(numbers: Mapping[str, Sequence[int]], kind: str) -> list[tuple[int, int]]:
    sides = (numbers.get(f"{side}_{kind}_dimensions", ()) for side in ("lhs", "rhs"))
    return list(zip(*sides))


def _convolution(operation: Operation, module: Module) -> Iterator[Strategy]:
    numbers = operation.attributes.get("dimension_numbers")
    if not isinstance(numbers, Mapping) or int(operation.attributes.get("batch_group_count", 1)) != 1:
        return
    image, kernel, result = (numbers[side] for side in ("input", "kernel", "output"))
    if can_split(module.shape_of(operation.operands[0]), image.index("b")):
        yield Strategy((image.index("b"), WHOLE), (result.index("b"),))
    if int(operation.attributes.get("feature_group_count", 1)) == 1:
        if can_split(module.shape_of(operation.operands[1]), kernel.index("o")):
            yield Strategy((WHOLE, kernel.index("o")), (result.index("f"),))
        if can_split(module.shape_of(operation.operands[0]), image.index("f")):
            yield Strategy((image.index("f"), kernel.index("i")), (WHOLE,), "add")


def _sort(operation: Operation, module: Module) -> Iterator[Strategy]:
    shape = module.shape_of(operation.operands[0])
    sorted_axis = int(operation.attributes.get("dimension", len(shape) - 1)) % max(len(shape), 1)
    for axis in _axes(module, operation.operands[0]):
        if axis != sorted_axis:
            yield Strategy((axis,) * len(operation.operands), (axis,) * len(operation.results))


def _update(operation: Operation, module: Module) -> Iterator[Strategy]:
    whole, part = (module.shape_of(operand) for operand in operation.operands[:2])
    for axis in _axes(module, operation.results[0]):
        if whole[axis] == part[axis]:
            yield Strategy((axis, axis, *(WHOLE,) * (len(operation.operands) - 2)), (axis,))


def _gather(operation: Operation, module: Module) -> Iterator[Strategy]:
    """By the rows that are looked up, or by columns of the table that are taken whole."""
    numbers = operation.attributes.get("dimension_numbers")
    sizes = operation.attributes.get("slice_sizes", ())
    if not isinstance(numbers, Mapping) or len(operation.operands) != 2:
        return
    table, indices = (module.shape_of(operand) for operand in operation.operands)
    batches = dict(
        zip(numbers.get("start_indices_batching_dims", ()), numbers.get("operand_batching_dims", ()))
    )
    gone = {*numbers.get("collapsed_slice_dims", ()), *batches.values()}
    offsets = list(numbers.get("offset_dims", ()))
    vector = int(numbers.get("index_vector_dim", len(indices)))
    looked_up = [axis for axis in range(len(indices)) if axis != vector]
    placed = [axis for axis in range(len(module.shape_of(operation.results[0]))) if axis not in offsets]
    for source, place in zip(looked_up, placed):
        if can_split(indices, source):
            yield Strategy((batches.get(source, WHOLE), source), (place,))
    taken = [axis for axis in range(len(table)) if axis not in gone]
    for source, place in zip(taken, offsets):
        if sizes[source] == table[source] and can_split(table, source):
            yield Strategy((source, WHOLE), (place,))


_RULES: Mapping[str, Rule] = {
    BARRIER: _elementwise,
    "constant": _generated,
    "iota": _generated,
    "broadcast_in_dim": _along_result(_broadcast),
    "reshape": _along_result(_reshape),
    "transpose": _along_result(_transpose),
    "slice": _along_result(_slice),
    "pad": _along_result(_pad),
    "reverse": _along_result(_reverse),
    "dynamic_slice": _along_result(_dynamic_slice),
    "concatenate": _concatenate,
    "reduce": _reduce,
    "reduce_window": _windows,
    MAX_POOL_GRADIENT: _pooling_gradient,
    ATTENTION_GRADIENT: _attention_gradient,
    "dot_general": _dot,
    "convolution": _convolution,
    "sort": _sort,
    "dynamic_update_slice": _update,
    "gather": _gather,
}
"""Opcode -> its strategies besides that both cores do all; absent ones have no other."""


def is_free(operation: Operation, free: set[int]) -> bool:
    """Whether each core makes an operation's result from constants, in whatever form it is needed."""
    if operation.opcode in ("constant", "iota"):
        return not isinstance(operation.attributes.get("value"), tuple)
    movable = operation.opcode in ("broadcast_in_dim", "reshape", "transpose", "slice", "convert")
    known = movable or operation.opcode in ELEMENTWISE
    return known and not operation.regions and all(operand in free for operand in operands_of(operation))
