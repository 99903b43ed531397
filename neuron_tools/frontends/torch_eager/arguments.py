"""Reads an operator signature as the device's core passes it.

One entry per schema argument: `None`, `bool`, `int`, `float`, `complex`, `str`, or a tuple whose first
element tells its kind: ("tensor", dtype name, sizes, strides, storage alias index, on device),
("number_tensor", dtype name), ("dtype", name), ("device", name), ("layout", int), ("memory_format", int),
("list", (entries...)), ("generator",).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from neuron_tools.frontends.torch_eager.layout import common_order, turned
from neuron_tools.frontends.torch_eager.schema import resolve
from neuron_tools.frontends.torch_lowering.builder import GraphBuilder
from neuron_tools.frontends.torch_lowering.layout import StoredTensor
from neuron_tools.frozen import frozen


@frozen
class NumberTensor:
    """A Python number that PyTorch wrapped into a tensor: part of the instruction, not of memory."""

    dtype: torch.dtype


@frozen
class Call:
    """An operator and its arguments; tensors are `StoredTensor` or `NumberTensor`.

    Attributes:
        order: Of dimensions, to which the tensors of an elementwise operator are turned; None: as called.
    """

    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    order: tuple[int, ...] | None = None

    @property
    def written_leaves(self) -> list[int]:
        """Positions of the written tensors among the flattened arguments."""
        positions: list[int] = []
        first = 0
        values = [*self.args, *self.kwargs.values()]
        for argument, value in zip(self.target._schema.arguments, values):
            count = len(pytree.tree_leaves(value))
            if argument.is_write:
                positions += range(first, first + count)
            first += count
        return positions

    def place(self, builder: GraphBuilder, leaf: Any) -> Any:
        """The argument `leaf` as the graph has it: tensors become parameters in storage order, then views."""
        if isinstance(leaf, NumberTensor):
            return builder.call(torch.full, ((), _example(leaf.dtype)), {"dtype": leaf.dtype}, row=0)
        return leaf.place(builder) if isinstance(leaf, StoredTensor) else leaf


def read_call(name: str, arguments: tuple[Any, ...]) -> Call:
    """Resolve the operator and its arguments.

    Raises:
        UnknownOperator: There is no such operator.
    """
    target = resolve(name)
    schema = target._schema.arguments
    called = [_read(entry) for entry in arguments]
    order = common_order(target, called)
    values = turned(called, order)
    args = tuple(value for value, argument in zip(values, schema) if not argument.kwarg_only)
    kwargs = {argument.name: value for value, argument in zip(values, schema) if argument.kwarg_only}
    return Call(target, args, kwargs, order)


def _read(entry: Any) -> Any:
    if not isinstance(entry, tuple):
        return entry
    return _READERS[entry[0]](entry)


def _read_tensor(entry: Any) -> Any:
    _, dtype_name, sizes, strides, _, on_device = entry
    dtype = getattr(torch, dtype_name)
    if not on_device and not sizes:
        return NumberTensor(dtype)
    return StoredTensor(dtype, tuple(sizes), tuple(strides))


def _nothing(entry: Any) -> None:
    """Layouts, memory formats and generators change no lowering: graphs are dense and without values."""


_READERS: dict[str, Callable[[Any], Any]] = {
    "tensor": _read_tensor,
    "number_tensor": lambda entry: NumberTensor(getattr(torch, entry[1])),
    "dtype": lambda entry: getattr(torch, entry[1]),
    "device": lambda entry: torch.device("cpu"),
    "layout": _nothing,
    "memory_format": _nothing,
    "generator": _nothing,
    "list": lambda entry: [_read(item) for item in entry[1]],
}


def _example(dtype: torch.dtype) -> Any:
    """A number that no simplification takes for 0 or 1."""
    if dtype == torch.bool:
        return True
    return 1.5 if dtype.is_floating_point or dtype.is_complex else 3
