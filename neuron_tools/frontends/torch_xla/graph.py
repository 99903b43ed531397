"""The graph that is being recorded: operations, values by number, and when two graphs are the same."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import torch
from torch.utils import _pytree as pytree

from neuron_tools.frontends.torch_lowering.layout import StoredTensor
from neuron_tools.frontends.torch_xla.errors import XlaError
from neuron_tools.frontends.torch_xla.origin import Origin
from neuron_tools.frontends.torch_xla.spread import is_spread
from neuron_tools.frontends.torch_xla.tensor import LazyValue
from neuron_tools.frozen import frozen

_numbers = itertools.count()
_DATA = frozenset({"other", "alpha", "beta", "value", "weight", "fill_value", "scalar", "min", "max"})
"""Arguments that PyTorch/XLA passes to the device as data, so that a new number is no new graph."""
LINES = "@"
"""In names of recorded steps: what stands behind it tells their lines, which are no part of a graph."""
_MEASURED = frozenset({"trips"})
"""Arguments that tell what happened when values were computed: any number is the same graph."""


@frozen
class ValueNumber:
    """Stands for a tensor among an operation's arguments."""

    number: int


@frozen
class RecordedOperation:
    """One operation.

    Attributes:
        target: The operator.
        leaves: Its flattened `(args, kwargs)`, each tensor a `ValueNumber`.
        structure: How to unflatten them.
        results: Numbers of the new tensors among its flattened results; None for what is none.
        origin: Who asked for it.
        key: What it has in common with the same operation of another graph.
    """

    target: Callable[..., Any]
    leaves: tuple[Any, ...]
    structure: pytree.TreeSpec
    results: tuple[int | None, ...]
    origin: Origin
    key: Hashable


@frozen
class GraphInput:
    """A value from before the graph.

    Attributes:
        number: In the graph.
        layout: Its type and layout.
        is_weight: Whether it is a parameter.
        sharding: How it lies over the cores of a partitioned program, in XLA's text; "" where it is whole.
    """

    number: int
    layout: StoredTensor
    is_weight: bool
    sharding: str = ""


@dataclass
class RecordedGraph:
    """What was recorded since the last graph ran.

    Attributes:
        serial: Number of the graph in this process.
        operations: In order.
        inputs: In the order of their first use.
        held: Their values, where the graph is to be partitioned: they are copied to the cores when it runs.
        trips: How many trips the loops take whose trips values decide, in their order.
    """

    serial: int = field(default_factory=lambda: next(_numbers))
    operations: list[RecordedOperation] = field(default_factory=list)
    inputs: list[GraphInput] = field(default_factory=list)
    held: list[LazyValue] = field(default_factory=list)
    trips: list[int] = field(default_factory=list)
    _made: list[tuple[int, weakref.ref[LazyValue]]] = field(default_factory=list)
    _count: int = 0

    def number_of(self, lazy: LazyValue, tensor: torch.Tensor | None = None) -> int:
        """The value's number; one from before the graph becomes an input.

        Args:
            lazy: The value.
            tensor: The tensor that holds it, where there is one.

        Raises:
            XlaError: It is a core's own part, made by hand in an earlier graph.
        """
        if lazy.graph != self.serial:
            if lazy.by_core is not None:
                raise XlaError(
                    "Each core's own part ends with its graph: call disable_manual_sharding before mark_step."
                )
            self._give_number(lazy)
            is_weight = isinstance(tensor, torch.nn.Parameter)
            self.inputs.append(GraphInput(lazy.number, StoredTensor.of(lazy.inner), is_weight))
            if is_spread():
                self.held.append(lazy)
        return lazy.number

    def add(
        self,
        target: Callable[..., Any],
        leaves: Sequence[Any],
        structure: pytree.TreeSpec,
        results: Sequence[LazyValue | None],
        origin: Origin,
    ) -> None:
        """Record an operation whose results are new values."""
        key = (target, structure, tuple(_leaf_keys(target, leaves, structure)), _layouts(leaves, results))
        numbers = tuple(self._made_here(result) for result in results)
        self.operations.append(
            RecordedOperation(target, tuple(leaves), structure, numbers, origin, (key, numbers))
        )

    def refuse_to_run(self) -> None:
        """Say why the graph cannot run now; it can."""

    def forget_last(self) -> None:
        """Take the last operation out: what it made becomes a value from before the graph."""
        results = set(self.operations.pop().results)
        for number, reference in self._made:
            lazy = reference()
            if number in results and lazy is not None:
                lazy.graph = lazy.number = -1
        self._made = [(number, reference) for number, reference in self._made if number not in results]
        self._count -= len(results)

    def settle(self) -> None:
        """Note how the inputs lie over the cores, which is known when the graph runs."""
        for at, value in enumerate(self.held):
            self.inputs[at] = replace(self.inputs[at], sharding=value.sharding.text if value.sharding else "")

    def made(self) -> dict[int, LazyValue]:
        """The values of operations that somebody still holds, by number."""
        values = ((number, reference()) for number, reference in self._made)
        return {number: value for number, value in values if value is not None}

    def outputs(self) -> tuple[int, ...]:
        """Numbers of the values that somebody still holds."""
        return tuple(number for number, reference in self._made if reference() is not None)

    def signature(self, outputs: tuple[int, ...]) -> GraphSignature:
        """What makes a graph the same as this one."""
        return GraphSignature(
            tuple(operation.key for operation in self.operations), tuple(self.inputs), outputs
        )

    def _made_here(self, lazy: LazyValue | None) -> int | None:
        if lazy is None:
            return None
        self._give_number(lazy)
        if lazy.by_core is None:  # others are no results
            self._made.append((lazy.number, weakref.ref(lazy)))
        return lazy.number

    def _give_number(self, lazy: LazyValue) -> None:
        lazy.graph, lazy.number = self.serial, self._count
        self._count += 1


@frozen
class GraphSignature:
    """Equal for graphs that are compiled once: source lines and numbers that are data are no part of it."""

    operations: tuple[Hashable, ...]
    inputs: tuple[GraphInput, ...]
    outputs: tuple[int, ...]

    @property
    def targets(self) -> tuple[Hashable, ...]:
        """The operators alone."""
        return tuple(key[0][0] for key in self.operations)  # type: ignore[index]  # keys of operations are tuples


def _leaf_keys(
    target: Callable[..., Any], leaves: Sequence[Any], structure: pytree.TreeSpec
) -> list[Hashable]:
    masked = _positions(target, structure, _DATA)
    measured = _positions(target, structure, _MEASURED)
    return [
        "measured" if index in measured else _leaf_key(leaf, index in masked)
        for index, leaf in enumerate(leaves)
    ]


def _leaf_key(leaf: Any, is_data: bool) -> Hashable:
    if isinstance(leaf, ValueNumber):
        return leaf
    if is_data and isinstance(leaf, (int, float)) and leaf not in (0, 1):
        return ("data", type(leaf).__name__)
    if isinstance(leaf, str):
        return leaf.partition(LINES)[0]
    return (type(leaf), repr(leaf))


@lru_cache(maxsize=65536)
def _positions(target: Any, structure: pytree.TreeSpec, names: frozenset[str]) -> frozenset[int]:
    """Positions of the leaves that are arguments of these names."""
    indices = list(range(structure.num_leaves))
    args, kwargs = pytree.tree_unflatten(indices, structure)
    named = {**dict(zip((argument.name for argument in target._schema.arguments), args)), **kwargs}
    return frozenset(index for name, index in named.items() if name in names and isinstance(index, int))


def _layouts(leaves: Sequence[Any], results: Sequence[LazyValue | None]) -> Hashable:
    """What an operation without tensor arguments makes: its shape may come from an argument that is data."""
    if any(isinstance(leaf, ValueNumber) for leaf in leaves):
        return ()
    return tuple(StoredTensor.of(result.inner) for result in results if result is not None)
