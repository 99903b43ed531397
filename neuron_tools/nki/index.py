"""Index expressions of the older dialect: `nl.arange(128)[:, None] * 2 + i`, `nl.mgrid`, masks over them.

An expression stays affine (an offset and one coefficient per axis) as long as its arithmetic is, so that
`tensor[expression, ...]` is a strided view and costs no copy. Other arithmetic falls back to the indices
themselves.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Bools, Ints
from neuron_tools.nki.errors import WrongValueError
from neuron_tools.nki.tracer import where

Rectangle = tuple[tuple[int, int], ...]


class MaskTruthWarning(UserWarning):
    """Python asks whether a mask of the older dialect is true."""


def _elementwise(compute: Callable[[Any, Any], Any]) -> Callable[[Index, Any], Index]:
    """A method that computes on the numbers of both."""
    return lambda self, other: _explicit(compute(self.evaluate(), as_index(other).evaluate()))


def _condition(relation: Callable[[Any, Any], Any]) -> Callable[[Index, Any], Mask]:
    """A method that compares both."""
    return lambda self, other: Mask((Condition(self - other, relation),))


@dataclass(eq=False, slots=True)
class Index:
    """Integers over a grid: `offset + sum(coefficients[a] * position[a])`, or explicit `values`.

    Attributes:
        extents: Size of the grid; 1 where the expression does not vary.
        coefficients: Step per axis, same length as `extents`; unused where `values` is set.
        offset: Value at position 0; unused where `values` is set.
        values: int64 array that broadcasts to `extents`, or None while the expression is affine.
    """

    extents: tuple[int, ...]
    coefficients: tuple[int, ...]
    offset: int = 0
    values: Ints | None = None
    __array_priority__ = 1000.0

    @property
    def shape(self) -> tuple[int, ...]:
        """Size of the grid."""
        return self.extents

    @property
    def ndim(self) -> int:
        """Axes of the grid."""
        return len(self.extents)

    def evaluate(self) -> Ints:
        """The integers, int64, of a shape that broadcasts to `extents`."""
        if self.values is not None:
            return self.values
        total = np.full((1,) * self.ndim, self.offset, np.int64)
        for axis, (extent, step) in enumerate(zip(self.extents, self.coefficients)):
            if step and extent > 1:
                shape = [1] * self.ndim
                shape[axis] = extent
                total = total + (np.arange(extent, dtype=np.int64) * step).reshape(shape)
        return total

    def limits(self) -> tuple[int, int]:
        """Smallest and largest integer."""
        if self.values is not None:
            return (int(self.values.min()), int(self.values.max())) if self.values.size else (0, -1)
        low = high = self.offset
        for extent, step in zip(self.extents, self.coefficients):
            if step > 0:
                high += step * (extent - 1)
            else:
                low += step * (extent - 1)
        return low, high

    def __getitem__(self, key: Any) -> Index:
        items = key if isinstance(key, tuple) else (key,)
        if Ellipsis in items:
            at = items.index(Ellipsis)
            named = sum(item is not None for item in items) - 1
            items = items[:at] + (slice(None),) * (self.ndim - named) + items[at + 1 :]
        if all(item is None or item == slice(None) for item in items):
            return self._with_new_axes(items)
        picked = np.broadcast_to(self.evaluate(), self.extents)[key]
        return _explicit(picked)

    def _with_new_axes(self, items: tuple[Any, ...]) -> Index:
        kept = iter(zip(self.extents, self.coefficients))
        pairs = [(1, 0) if item is None else next(kept) for item in items]
        pairs.extend(kept)
        extents, steps = tuple(e for e, _ in pairs), tuple(s for _, s in pairs)
        if self.values is None:
            return Index(extents, steps, self.offset)
        return _explicit(np.broadcast_to(self.values, self.extents).reshape(extents))

    def __add__(self, other: Any) -> Index:
        if isinstance(other, (int, np.integer)):
            if self.values is None:
                return Index(self.extents, self.coefficients, self.offset + int(other))
            return _explicit(self.values + int(other))
        second = as_index(other)
        if self.values is not None or second.values is not None:
            return _explicit(self.evaluate() + second.evaluate())
        first, second = _aligned(self, second)
        return Index(
            tuple(max(a, b) for a, b in zip(first.extents, second.extents)),
            tuple(a + b for a, b in zip(first.coefficients, second.coefficients)),
            first.offset + second.offset,
        )

    __radd__ = __add__

    def __mul__(self, other: Any) -> Index:
        if isinstance(other, (int, np.integer)):
            if self.values is not None:
                return _explicit(self.values * int(other))
            steps = tuple(step * int(other) for step in self.coefficients)
            return Index(self.extents, steps, self.offset * int(other))
        return _explicit(self.evaluate() * as_index(other).evaluate())

    __rmul__ = __mul__

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other: Any) -> Index:
        difference: Index = self + (-other)
        return difference

    def __rsub__(self, other: Any) -> Index:
        negated: Index = (-self) + other
        return negated

    __floordiv__, __mod__ = _elementwise(operator.floordiv), _elementwise(operator.mod)
    __and__, __rshift__ = _elementwise(operator.and_), _elementwise(operator.rshift)
    __lt__, __le__ = _condition(operator.lt), _condition(operator.le)
    __gt__, __ge__ = _condition(operator.gt), _condition(operator.ge)
    __eq__ = _condition(operator.eq)  # type: ignore[assignment]  # a comparison of indices is a mask
    __ne__ = _condition(operator.ne)  # type: ignore[assignment]  # a comparison of indices is a mask
    __hash__ = None  # type: ignore[assignment]  # as Python does beside __eq__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        values = np.broadcast_to(self.evaluate(), self.extents)
        return np.array(values, dtype=dtype)

    def __repr__(self) -> str:
        return f"Index(shape={self.extents})"


def _explicit(values: Ints) -> Index:
    return Index(values.shape, (0,) * values.ndim, 0, values)


def as_index(value: Any) -> Index:
    """An expression for an integer, an expression or an integer array."""
    if isinstance(value, Index):
        return value
    if isinstance(value, (int, np.integer)):
        return Index((), (), int(value))
    return _explicit(np.asarray(_known_values(value), np.int64))


def _known_values(value: Any) -> Any:
    """The integers of a tile or a register in an index expression: they decide where data goes."""
    known = getattr(value, "known_integers", None)
    return value if known is None else known()


def _aligned(first: Index, second: Index) -> tuple[Index, Index]:
    width = max(first.ndim, second.ndim)
    return _padded(first, width), _padded(second, width)


def _padded(index: Index, width: int) -> Index:
    missing = width - index.ndim
    if not missing:
        return index
    return Index((1,) * missing + index.extents, (0,) * missing + index.coefficients, index.offset)


def pad(index: Index, width: int) -> Index:
    """The expression over a grid of `width` axes, new axes in front."""
    if index.values is not None:
        return _explicit(index.values.reshape((1,) * (width - index.values.ndim) + index.values.shape))
    return _padded(index, width)


def arange(*bounds: int) -> Index:
    """`nl.arange(stop)` or `nl.arange(start, stop[, step])`: consecutive integers over one axis.

    Raises:
        WrongValueError: A bound is no whole number.
    """
    if any(bound != int(bound) for bound in bounds):
        raise WrongValueError(f"nl.arange takes whole numbers, got {bounds}; divide with //", where())
    numbers = range(*(int(bound) for bound in bounds))
    return Index((len(numbers),), (numbers.step,), numbers.start)


class IndexGrid:
    """`nl.mgrid[0:128, 0:512]`: one expression per axis of a grid."""

    def __getitem__(self, key: Any) -> tuple[Index, ...]:
        items = key if isinstance(key, tuple) else (key,)
        ranges = [range(int(item.start or 0), int(item.stop), int(item.step or 1)) for item in items]
        width = len(ranges)
        grid = []
        for axis, numbers in enumerate(ranges):
            extents, steps = [1] * width, [0] * width
            extents[axis], steps[axis] = len(numbers), numbers.step
            grid.append(Index(tuple(extents), tuple(steps), numbers.start))
        return Grid(grid)


_FREE_AXES = "xyzw"


class Grid(tuple):  # type: ignore[type-arg]  # of one Index or several
    """The expressions of `nl.mgrid`, also reachable by axis: `.p`, then `.x`, `.y`, `.z`, `.w`."""

    @property
    def p(self) -> Index:
        """Expression of the partition axis."""
        found: Index = self[0]
        return found

    def __getattr__(self, name: str) -> Index:
        axis = _FREE_AXES.find(name) + 1
        if len(name) == 1 and 0 < axis < len(self):
            found: Index = self[axis]
            return found
        raise AttributeError(name)


@dataclass(eq=False, slots=True)
class Condition:
    """`relation(index, 0)` at each position of the index's grid."""

    index: Index
    relation: Callable[[Any, Any], Any]

    def evaluate(self, width: int) -> Bools:
        """Boolean array of `width` axes that broadcasts over the grid."""
        return np.asarray(self.relation(pad(self.index, width).evaluate(), 0))

    def axis(self, width: int) -> int:
        """The one axis on which it depends; -1: none, -2: several."""
        index = pad(self.index, width)
        if index.values is not None:
            varying = [axis for axis, extent in enumerate(index.values.shape) if extent > 1]
        else:
            steps = zip(index.extents, index.coefficients)
            varying = [axis for axis, (extent, step) in enumerate(steps) if step and extent > 1]
        return varying[0] if len(varying) == 1 else (-1 if not varying else -2)


@dataclass(eq=False, slots=True)
class Mask:
    """Where an instruction of the older dialect acts: all conditions hold, and `array` (if any) is true."""

    conditions: tuple[Condition, ...]
    array: Bools | None = None

    def __bool__(self) -> bool:
        """True, so that `a and b` is b: AWS's own examples join masks with Python's `and`.

        Warns:
            MaskTruthWarning: Always; it says what that leaves out.
        """
        warnings.warn(
            f"{where()}: to Python's and, or, not and if a mask is always true: of `a and b` only b is left; "
            "join masks with & and |, negate one with ~, each in parentheses",
            MaskTruthWarning,
            stacklevel=2,
        )
        return True

    def __and__(self, other: MaskLike) -> Mask:
        if isinstance(other, (bool, np.bool_)):
            return self if other else Mask((), np.zeros((1,), bool))
        array = self.array
        if other.array is not None:
            array = other.array if array is None else array & other.array
        return Mask(self.conditions + other.conditions, array)

    __rand__ = __and__

    def __or__(self, other: MaskLike) -> Mask:
        if isinstance(other, (bool, np.bool_)):
            return Mask(()) if other else self
        return Mask((), self.evaluate() | other.evaluate())

    __ror__ = __or__

    def __invert__(self) -> Mask:
        return Mask((), ~self.evaluate())

    @property
    def ndim(self) -> int:
        """Axes of the grid it speaks about."""
        widths = [condition.index.ndim for condition in self.conditions]
        return max([*widths, 0 if self.array is None else self.array.ndim])

    def evaluate(self, width: int | None = None) -> Bools:
        """Boolean array that broadcasts over the grid."""
        width = self.ndim if width is None else width
        total = np.ones((1,) * width, bool)
        for condition in self.conditions:
            total = total & condition.evaluate(width)
        if self.array is not None:
            total = total & self.array.reshape((1,) * (width - self.array.ndim) + self.array.shape)
        return total

    def split(self, shape: tuple[int, ...]) -> tuple[Rectangle, Bools | None]:
        """The part of a tile of `shape` that the mask leaves.

        Returns:
            ((start, stop) per axis, rest): `rest` is a boolean array over that rectangle, or None where
            the rectangle is exactly what the mask leaves. An empty rectangle has start == stop.
        """
        width = len(shape)
        limits = [(0, extent) for extent in shape]
        rest: list[Bools] = []
        if self.ndim > width:
            rest.append(self.evaluate().reshape(shape))
        else:
            for condition in self.conditions:
                _narrow(condition, width, limits, rest)
            if self.array is not None:
                rest.append(self.array.reshape((1,) * (width - self.array.ndim) + self.array.shape))
        rectangle = tuple((start, max(start, stop)) for start, stop in limits)
        return rectangle, _rest_array(rest, shape, rectangle)


MaskLike = Mask | bool | np.bool_


def _narrow(condition: Condition, width: int, limits: list[tuple[int, int]], rest: list[Bools]) -> None:
    axis = condition.axis(width)
    holds = condition.evaluate(width)
    if axis == -1:
        if not holds.all():
            limits[:] = [(0, 0)] * width
        return
    if axis >= 0:
        positions = np.flatnonzero(holds.ravel()[: limits[axis][1]])
        if len(positions) == 0:
            limits[axis] = (0, 0)
            return
        first, last = int(positions[0]), int(positions[-1]) + 1
        if last - first == len(positions):
            limits[axis] = (max(limits[axis][0], first), min(limits[axis][1], last))
            return
    rest.append(holds)


def _rest_array(rest: list[Bools], shape: tuple[int, ...], rectangle: Rectangle) -> Bools | None:
    if not rest:
        return None
    total = np.ones((1,) * len(shape), bool)
    for array in rest:
        total = total & array
    total = np.broadcast_to(total, shape)[tuple(slice(*limits) for limits in rectangle)]
    return None if total.all() else total
