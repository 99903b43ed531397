"""Steps taken as long as a condition holds: a loop of the program whose trips values decide.

The graph holds `neuron_lowering::repeat`, which torch-mlir never sees: `loops` makes a StableHLO loop of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from neuron_tools.frontends.torch_lowering.intrinsics import Intrinsic, becomes, named_by
from neuron_tools.frontends.torch_lowering.recurrence import Step, step_named
from neuron_tools.frozen import frozen

OPCODE = "repetition"
"""The opcode of what such a call becomes until the loop is made; its attribute of that name says which."""

_library = torch.library.Library("neuron_lowering", "FRAGMENT")
_library.define("repeat(str condition, str step, Tensor[] carried, Tensor[] fixed, int trips) -> Tensor[]")


@frozen
class Repetition:
    """One call.

    Attributes:
        condition: Whether there is another trip: makes one truth value, and carries nothing on.
        step: What a trip does.
        carried: Places of what it begins with, among the call's different operands.
        fixed: Places of what every trip reads.
        examples: The different operands, as fake tensors.
        trips: How many there were when values were computed, by which the loop is timed.
    """

    condition: Step
    step: Step
    carried: tuple[int, ...]
    fixed: tuple[int, ...]
    examples: tuple[Any, ...]
    trips: int


def repeat(
    condition: str, step: str, carried: Sequence[Any], fixed: Sequence[Any]
) -> tuple[Sequence[Any], int]:
    """Take a step as long as a condition holds.

    Args:
        condition: Name of the condition (`name_step`).
        step: Name of the step.
        carried: What the first trip begins with; each leaves tensors of these shapes and types.
        fixed: Tensors that the condition and every trip read.

    Returns:
        What the last trip left, and how many there were.
    """
    holds, trip, trips = step_named(condition), step_named(step), 0
    while bool(holds(carried, (), fixed)[1][0]):
        carried, _ = trip(carried, (), fixed)
        trips += 1
    return [*map(torch.clone, carried)], trips


def repetition_of(node: fx.Node) -> Intrinsic | None:
    """What a call of `repeat` becomes; None for other calls."""
    if node.target is not torch.ops.neuron_lowering.repeat.default:
        return None
    condition, step, *groups, trips = node.args
    operands = node.all_input_nodes
    carried, fixed = (tuple(operands.index(each) for each in group) for group in groups)
    examples = tuple(each.meta["val"] for each in operands)
    call = Repetition(step_named(condition), step_named(step), carried, fixed, examples, int(trips))
    return Intrinsic(OPCODE, {OPCODE: call})


becomes("neuron_lowering::repeat", repetition_of)
named_by("neuron_lowering::repeat", lambda node: "while_loop")


@torch.library.register_fake("neuron_lowering::repeat", lib=_library)  # type: ignore[untyped-decorator]  # torch is not followed
def _shapes(condition: str, step: str, carried: Any, fixed: Any, trips: int) -> list[Any]:
    return [torch.empty_like(each) for each in carried]
