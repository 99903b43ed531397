"""One step of a loop, recorded by itself: what it does, what it takes from outside and what it gives."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx

from neuron_tools.frontends.torch_lowering.expansion import is_mutable
from neuron_tools.frontends.torch_lowering.recurrence import name_step
from neuron_tools.frontends.torch_xla.errors import XlaError
from neuron_tools.frontends.torch_xla.graph import LINES, RecordedGraph, RecordedOperation, ValueNumber
from neuron_tools.frontends.torch_xla.tensor import LazyValue, XlaTensor
from neuron_tools.frontends.torch_xla.tracing import described, replay, trace_operations
from neuron_tools.frozen import frozen
from neuron_tools.records.program import FrameworkOperation

_numbers: dict[Hashable, int] = {}
_names: dict[Hashable, str] = {}


@dataclass
class Body(RecordedGraph):
    """What is recorded of one step, which never runs by itself.

    Attributes:
        taken: The tensors that hold its inputs, in their order.
    """

    taken: list[XlaTensor] = field(default_factory=list)
    _places: dict[int, int] = field(default_factory=dict)
    _versions: list[int] = field(default_factory=list)
    _before: list[tuple[LazyValue, int, int]] = field(default_factory=list)

    def number_of(self, lazy: LazyValue, tensor: torch.Tensor | None = None) -> int:
        """The value's number; what is from outside becomes an input, and is held by whom gradients reach."""
        held = tensor if isinstance(tensor, XlaTensor) else XlaTensor(lazy)
        if lazy.graph != self.serial:
            self._before.append((lazy, lazy.graph, lazy.number))
            number = super().number_of(lazy, tensor)
            self._places[number] = len(self.taken)
            self.taken.append(held)
            self._versions.append(held._version)
        elif held.requires_grad and lazy.number in self._places:
            at = self._places[lazy.number]
            self.taken[at], self._versions[at] = held, held._version
        return lazy.number

    def written(self) -> list[int]:
        """Places among `taken` of the tensors that were written in place."""
        return [at for at, each in enumerate(self.taken) if each._version != self._versions[at]]

    def refuse_to_run(self) -> None:
        """A step's values are not there before the loop runs.

        Raises:
            XlaError: Always.
        """
        raise XlaError(
            "The function of a loop looks at a value (item, print, a condition, mark_step), which is there "
            "only when the loop runs: let it return the tensor, and look at it behind the loop."
        )

    def give_back(self) -> None:
        """Let values from outside have the numbers that they had in the program's graph."""
        for lazy, graph, number in reversed(self._before):
            lazy.graph, lazy.number = graph, number


@frozen
class BodyStep:
    """Recorded operations as the step of a recurrence.

    Attributes:
        operations: In order.
        taken: Numbers of what is carried, of each table's row and of what stays.
        given: Numbers of what is carried on and of what the row makes.
        carried: How many of both are carried.
    """

    operations: tuple[RecordedOperation, ...]
    taken: tuple[int, ...]
    given: tuple[int, ...]
    carried: int

    def __call__(self, carried: Sequence[Any], row: Sequence[Any], fixed: Sequence[Any]) -> Any:
        """The values of one step; what it takes stays as it is."""
        inputs = [*carried, *row, *fixed]
        if any(is_mutable(operation.target) for operation in self.operations):
            inputs = [each.clone() for each in inputs]
        device = next((each.device for each in inputs if each.device.type != "cpu"), None)
        values: dict[int, Any] = dict(zip(self.taken, inputs))
        for operation in self.operations:
            replay(operation, values, device)
        given = [values[number] for number in self.given]
        return given[: self.carried], given[self.carried :]

    def trace(self, inputs: Sequence[Any]) -> fx.Graph:
        """Functional calls on fake tensors."""
        return trace_operations(self.operations, self.taken, inputs, self.given)

    def describe(self, node: fx.Node) -> FrameworkOperation:
        """A call's framework row, at the line that asked for it."""
        return described(node)

    def named(self) -> str:
        """The name of the step: a number that equal ones have in common, and one of those at equal lines."""
        done = tuple(
            (each.target, each.structure, repr(each.leaves), each.results) for each in self.operations
        )
        key = (done, self.taken, self.given, self.carried)
        number = _numbers.setdefault(key, len(_numbers))
        lines = tuple(replace(each.origin, sequence=-1) for each in self.operations)
        if (number, lines) not in _names:
            _names[number, lines] = f"recorded{number}{LINES}{len(_names)}"
            name_step(_names[number, lines], self)
        return _names[number, lines]


def used_by(operations: Sequence[RecordedOperation]) -> set[int]:
    """Numbers of the values that operations take."""
    return {leaf.number for each in operations for leaf in each.leaves if isinstance(leaf, ValueNumber)}
