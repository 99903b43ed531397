"""What index expressions make of a tensor's axes, worked out once for all that differ in offsets only."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from neuron_tools.frozen import frozen
from neuron_tools.nki.index import Index, pad
from neuron_tools.nki.layout import Shape

IndexForm = tuple[Shape, Shape] | None
"""Extents and coefficients of an affine expression; None for a number."""


@frozen
class Grid:
    """The view that expressions pick, but for where it begins.

    Attributes:
        extents: Its shape.
        strides: Elements from one position to the next along each axis.
        reaches: How far each expression reaches below and above its offset.
    """

    extents: Shape
    strides: Shape
    reaches: tuple[tuple[int, int], ...]


@lru_cache(maxsize=4096)
def grid_of(strides: Shape, forms: tuple[IndexForm, ...]) -> Grid:
    """The grid of one expression per axis.

    Args:
        strides: Of the tensor.
        forms: Of the expressions.
    """
    indices = [Index(*(form or ((), ()))) for form in forms]
    width = max(index.ndim for index in indices)
    padded = [pad(index, width) for index in indices]
    extents = tuple(max(index.extents[axis] for index in padded) for axis in range(width))
    steps = tuple(_step(axis, strides, padded) for axis in range(width))
    return Grid(extents, steps, tuple(index.limits() for index in indices))


def _step(axis: int, strides: Shape, indices: Sequence[Index]) -> int:
    varying = [(index, stride) for index, stride in zip(indices, strides) if index.extents[axis] > 1]
    return sum(index.coefficients[axis] * stride for index, stride in varying)
