"""`torch_xla.experimental.scan`: a function that is called for each row, as one loop of the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neuron_tools.frontends.torch_xla import scanning


def scan(
    fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    partition_fn: Any = None,
    is_fn_pure: bool = False,
) -> tuple[Any, Any]:
    """Call a function for each row of some tensors, each time with what the call before left.

    Args:
        fn: Of what is carried and a row of `xs`; returns what is carried on, and a row of results.
        init: What the first call begins with: tensors in any nest.
        xs: Tensors in any nest, whose first axis counts the rows.
        partition_fn: Accepted for compatibility: all that the backward pass needs is kept.
        is_fn_pure: Accepted for compatibility: equal loops are compiled once.

    Returns:
        What the last call left, and the results of all calls, a row each.

    Raises:
        ValueError: `fn` cannot be called, there are no rows, tensors have different numbers of them, what
            is carried changes its nest, shape or type, or `fn` writes in place to another tensor.
        XlaError: Tensors are on different devices, or `fn` looks at a value.
    """
    if not callable(fn):
        raise ValueError(f"scan needs a function to call for each row, not {fn!r}.")
    return scanning.scan(fn, init, xs)
