"""`torch_xla.experimental.fori_loop`: loops whose number of trips is decided on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from neuron_tools.frontends.torch_xla import repeating


def fori_loop(
    lower: torch.Tensor, upper: torch.Tensor, body_fun: Callable[..., Any], *input_value: Any
) -> Any:
    """Call a function `upper - lower` times, each time with what the call before left.

    Args:
        lower, upper: Whole numbers on the device.
        body_fun: Of what is carried; gives what is carried on: a tensor, or a tuple of several.
        *input_value: What the first call begins with.

    Returns:
        How many trips were left, which is 0, and what the last call left.

    Raises:
        ValueError: As of `while_loop`.
        XlaError: Likewise.
    """

    def step(left: torch.Tensor, *values: Any) -> tuple[Any, ...]:
        made = body_fun(*values)
        return (left - 1, *(made if isinstance(made, tuple) else (made,)))

    return list(repeating.while_loop(lambda left, *_: left > 0, step, (upper - lower, *input_value)))


def while_loop(
    cond_fn: Callable[..., Any],
    body_fn: Callable[..., Any],
    carried_inputs: Sequence[Any],
    additional_inputs: Sequence[Any] | None = None,
) -> Any:
    """Call a function as long as a condition holds, each time with what the call before left.

    Args:
        cond_fn: Of what is carried and `additional_inputs`; gives one truth value, a tensor.
        body_fn: Likewise; gives what is carried on.
        carried_inputs: What both are called with first.
        additional_inputs: What both read; they may also read any other tensor.

    Returns:
        What the last call left. No gradients pass through.

    Raises:
        ValueError: What is carried changes its shape or type, the condition gives something else than one
            truth value, or a function writes in place to another tensor.
        XlaError: Tensors are on different devices, a function looks at a value, or another loop is around.
    """
    return repeating.while_loop_of_graphs(cond_fn, body_fn, carried_inputs, additional_inputs or ())
