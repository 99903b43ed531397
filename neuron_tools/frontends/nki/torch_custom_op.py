"""`nki_op`: functions that call kernels, as operators of PyTorch's."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.library import CustomOpDef

from neuron_tools.frontends.nki.torch_graphs import lower_as_body


def nki_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    *,
    mutates_args: str | Iterable[str] = (),
    schema: str | None = None,
) -> Any:
    """Register a function that calls NKI kernels as a PyTorch operator.

    Args:
        name: "library::operator".
        fn: The function; without it this is a decorator. Its parameters and its result need types that
            PyTorch's operators have (`torch.Tensor`, `int`, `float`, `torch.Tensor | None`, ...).
        mutates_args: Names of the arguments that it writes.
        schema: PyTorch's schema instead of the types.

    Returns:
        The operator, as `torch.library.custom_op` gives it: call it, give it a gradient with
        `register_autograd`, find it as `torch.ops.library.operator`.

    Raises:
        ValueError: A parameter has no type, or one that operators cannot take.
    """
    if fn is None:
        return functools.partial(nki_op, name, mutates_args=mutates_args, schema=schema)
    written = mutates_args if isinstance(mutates_args, str) else tuple(mutates_args)
    operator: CustomOpDef = torch.library.custom_op(name, fn, mutates_args=written, schema=schema)
    operator.register_fake(fn)
    lower_as_body(name, fn)
    return operator
