"""A step taken once per row, each with what the one before left: a loop of the program, not many copies.

The graph holds `neuron_lowering::recur`, which torch-mlir never sees: `loops` makes a StableHLO loop of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import fx

from neuron_tools.frontends.torch_lowering.intrinsics import Intrinsic, becomes, named_by
from neuron_tools.frozen import frozen
from neuron_tools.records.program import FrameworkOperation

OPCODE = "recurrence"
"""The opcode of what such a call becomes until the loop is made; its attribute of that name says which."""

Step = Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], tuple[Sequence[Any], Sequence[Any]]]
"""Of what is carried, one row of each table, and what stays: what is carried on, and what this row makes."""


@runtime_checkable
class DescribedStep(Protocol):
    """A step that is a graph, whose calls have framework rows of their own."""

    def __call__(self, carried: Sequence[Any], row: Sequence[Any], fixed: Sequence[Any]) -> Any:
        """As of every step."""

    def trace(self, inputs: Sequence[Any]) -> fx.Graph:
        """Its calls on what is carried, one row of each table and what stays, as fake tensors."""

    def describe(self, node: fx.Node) -> FrameworkOperation:
        """A call's framework row."""


_library = torch.library.Library("neuron_lowering", "FRAGMENT")
_library.define(
    "recur(str step, Tensor[] carried, Tensor[] tables, Tensor[] fixed, bool backwards) -> Tensor[]"
)
_STEPS: dict[str, Step] = {}


@frozen
class Recurrence:
    """One call.

    Attributes:
        step: What is done with each row.
        carried: Places of what it begins with, among the call's different operands.
        tables: Places of what has a row per step.
        fixed: Places of what every step reads.
        examples: The different operands, as fake tensors.
        backwards: Whether the last row comes first.
    """

    step: Step
    carried: tuple[int, ...]
    tables: tuple[int, ...]
    fixed: tuple[int, ...]
    examples: tuple[Any, ...]
    backwards: bool


def step(function: Step) -> Step:
    """Let a function of a module be the step of recurrences."""
    name_step(_name(function), function)
    return function


def name_step(name: str, function: Step) -> None:
    """Let a function be the step of recurrences under a name."""
    _STEPS[name] = function


def step_named(name: str) -> Step:
    """The step of a name."""
    return _STEPS[name]


def recur(
    function: Step | str,
    carried: Sequence[Any],
    tables: Sequence[Any],
    fixed: Sequence[Any] = (),
    *,
    backwards: bool = False,
) -> tuple[list[Any], list[Any]]:
    """Take a step for each row of some tables.

    Args:
        function: The step, registered by `step`, or its name.
        carried: What the first step begins with; each step leaves tensors of these shapes and types.
        tables: Tensors whose first axis counts the rows; at least one, with a row.
        fixed: Tensors that every step reads.
        backwards: Whether the last row comes first; what it makes still stands last.

    Returns:
        What the last step left, and what all steps made, a row each.
    """
    name = function if isinstance(function, str) else _name(function)
    made = torch.ops.neuron_lowering.recur(name, list(carried), list(tables), list(fixed), backwards)
    return made[: len(carried)], made[len(carried) :]


def recurrence_of(node: fx.Node) -> Intrinsic | None:
    """What a call of `recur` becomes; None for other calls."""
    if node.target is not torch.ops.neuron_lowering.recur.default:
        return None
    name, *groups, backwards = node.args
    operands = node.all_input_nodes
    carried, tables, fixed = (tuple(operands.index(each) for each in group) for group in groups)
    examples = tuple(each.meta["val"] for each in operands)
    call = Recurrence(_STEPS[name], carried, tables, fixed, examples, backwards)
    return Intrinsic(OPCODE, {OPCODE: call})


becomes("neuron_lowering::recur", recurrence_of)
named_by("neuron_lowering::recur", lambda node: "recurrence")


def _name(function: Any) -> str:
    return f"{function.__module__}.{function.__qualname__}"


@torch.library.impl(  # type: ignore[untyped-decorator]  # torch is not followed
    "neuron_lowering::recur", "CompositeExplicitAutograd", lib=_library
)
def _step_by_step(name: str, carried: Any, tables: Any, fixed: Any, backwards: bool) -> list[Any]:
    """The values: one step after the other."""
    rows = range(tables[0].shape[0])
    made: list[Any] = [[] for _ in rows]
    for at in reversed(rows) if backwards else rows:
        carried, made[at] = _STEPS[name](carried, [table[at] for table in tables], fixed)
    return [*map(torch.clone, carried), *map(torch.stack, zip(*made))]


@torch.library.register_fake("neuron_lowering::recur", lib=_library)  # type: ignore[untyped-decorator]  # torch is not followed
def _shapes(name: str, carried: Any, tables: Any, fixed: Any, backwards: bool) -> list[Any]:
    _, made = _STEPS[name](carried, [table[0] for table in tables], fixed)
    rows = tables[0].shape[0]
    return [torch.empty_like(each) for each in carried] + [
        each.new_empty((rows, *each.shape)) for each in made
    ]
