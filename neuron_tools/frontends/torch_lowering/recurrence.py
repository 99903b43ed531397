"""A step taken once per row, each with what the one before left: a loop of the program, not many copies.

The graph holds `neuron_lowering::recur`, which torch-mlir never sees: `loops` makes a StableHLO loop of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from neuron_tools.frontends.torch_lowering.intrinsics import Intrinsic, becomes
from neuron_tools.frozen import frozen

OPCODE = "recurrence"
"""The opcode of what such a call becomes until the loop is made; its attribute of that name says which."""

Step = Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], tuple[Sequence[Any], Sequence[Any]]]
"""Of what is carried, one row of each table, and what stays: what is carried on, and what this row makes."""

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
    _STEPS[_name(function)] = function
    return function


def recur(
    function: Step,
    carried: Sequence[Any],
    tables: Sequence[Any],
    fixed: Sequence[Any] = (),
    *,
    backwards: bool = False,
) -> tuple[list[Any], list[Any]]:
    """Take a step for each row of some tables.

    Args:
        function: The step, registered by `step`.
        carried: What the first step begins with; each step leaves tensors of these shapes and types.
        tables: Tensors whose first axis counts the rows; at least one, with a row.
        fixed: Tensors that every step reads.
        backwards: Whether the last row comes first; what it makes still stands last.

    Returns:
        What the last step left, and what all steps made, a row each.
    """
    made = torch.ops.neuron_lowering.recur(
        _name(function), list(carried), list(tables), list(fixed), backwards
    )
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


def _name(function: Step) -> str:
    return f"{function.__module__}.{function.__qualname__}"


@torch.library.register_fake("neuron_lowering::recur", lib=_library)  # type: ignore[untyped-decorator]  # torch is not followed
def _shapes(name: str, carried: Any, tables: Any, fixed: Any, backwards: bool) -> list[Any]:
    _, made = _STEPS[name](carried, [table[0] for table in tables], fixed)
    rows = tables[0].shape[0]
    return [torch.empty_like(each) for each in carried] + [
        each.new_empty((rows, *each.shape)) for each in made
    ]
