"""Arrays of which only shape and type are known: kernels are traced with them before there are values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

import numpy as np

from neuron_tools.arrays import Array
from neuron_tools.nki.dtypes import DType, as_dtype

Form = tuple[tuple[int, ...], str]
"""Shape and element type."""


@dataclass(frozen=True, eq=False)
class AbstractArray:
    """An array without values."""

    shape: tuple[int, ...]
    dtype: DType

    @property
    def form(self) -> Form:
        """Its shape and type."""
        return self.shape, str(self.dtype)


class AbstractAdapter:
    """Lets abstract arrays be kernel arguments; where values are asked for, they are zeros."""

    makes_values_up = True

    def accepts(self, value: Any) -> bool:
        """Whether it is one."""
        return isinstance(value, AbstractArray)

    def shape(self, value: AbstractArray) -> tuple[int, ...]:
        """Its shape."""
        return value.shape

    def dtype(self, value: AbstractArray) -> DType:
        """Its type."""
        return value.dtype

    def array(self, value: AbstractArray) -> Array:
        """Zeros."""
        return np.zeros(value.shape, value.dtype.dtype)

    def update(self, value: AbstractArray, array: Array) -> None:
        """Nothing is kept."""

    def result(self, array: Array, dtype: DType, example: Any) -> AbstractArray:
        """The form of a result."""
        return AbstractArray(tuple(array.shape), dtype)

    def empty(self, shape: tuple[int, ...], dtype: DType, example: Any) -> AbstractArray:
        """The form of a result."""
        return AbstractArray(tuple(shape), as_dtype(dtype))


def map_leaves(value: Any, is_leaf: Callable[[Any], bool], change: Callable[[Any], Any]) -> Any:
    """A structure of arguments with its leaves changed, in the order in which a kernel binds them.

    Args:
        value: Tuples, lists, dictionaries and dataclasses, nested; anything else stays as it is.
        is_leaf: Which parts to change.
        change: Called with each.
    """
    if is_leaf(value):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_leaves(item, is_leaf, change) for item in value))
    if isinstance(value, (tuple, list)):
        return type(value)(map_leaves(item, is_leaf, change) for item in value)
    if isinstance(value, dict):
        return {key: map_leaves(item, is_leaf, change) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return _map_record(value, is_leaf, change)
    return value


def _map_record(value: Any, is_leaf: Callable[[Any], bool], change: Callable[[Any], Any]) -> Any:
    """A dataclass with the fields replaced that hold leaves; itself where none does."""
    fields = {name: getattr(value, name, None) for name in value.__dataclass_fields__}
    changed = {
        name: map_leaves(field, is_leaf, change) for name, field in fields.items() if _holds(field, is_leaf)
    }
    return replace(value, **changed) if changed else value


def _holds(value: Any, is_leaf: Callable[[Any], bool]) -> bool:
    if is_leaf(value):
        return True
    if isinstance(value, (tuple, list)):
        return any(_holds(item, is_leaf) for item in value)
    if isinstance(value, dict):
        return any(_holds(item, is_leaf) for item in value.values())
    if is_dataclass(value) and not isinstance(value, type):
        return any(_holds(getattr(value, name, None), is_leaf) for name in value.__dataclass_fields__)
    return False
