"""Calls that end the process inside torch-mlir, in a form that it survives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.utils import _pytree as pytree

from neuron_tools.frontends.torch_lowering.fake import fake_tensor

_DIMENSION_ARGUMENTS = ("dim", "dims", "dimension")
_WITH_INDEX = ("aten::scatter", "aten::gather")  # an index, and values, that have the tensor's rank
_SHIFTS = ("aten::bitwise_left_shift", "aten::bitwise_right_shift", "aten::__lshift__", "aten::__rshift__")


def survivable_form(target: Any, values: list[Any]) -> Callable[..., Any] | None:
    """What to call in an operator's place; None where torch-mlir survives the operator itself.

    Args:
        target: What is called.
        values: Its positional arguments; tensors may be fake.
    """
    if _takes_dimensions_of_scalar(target, values):
        return _as_vector(target)
    return _of_equal_shapes(target) if _shifts_unequal_shapes(target, values) else None


def _shifts_unequal_shapes(target: Any, values: list[Any]) -> bool:
    if not isinstance(target, torch._ops.OpOverload) or target._schema.name not in _SHIFTS:
        return False
    shapes = {tuple(value.shape) for value in values if isinstance(value, torch.Tensor)}
    return len(shapes) > 1


def _of_equal_shapes(target: Any) -> Callable[..., Any]:
    """`target` on its tensors expanded to one shape."""

    def run(*values: Any) -> Any:
        return target(*torch.broadcast_tensors(*values))

    return run


def _takes_dimensions_of_scalar(target: Any, leaves: list[Any]) -> bool:
    """Whether an operator gets dimensions of a tensor that has none, which torch-mlir does not survive."""
    if not isinstance(target, torch._ops.OpOverload) or not leaves or not isinstance(leaves[0], torch.Tensor):
        return False
    if str(target._schema.arguments[0].type) != "Tensor":
        return False
    names = {argument.name for argument in target._schema.arguments}
    return leaves[0].dim() == 0 and not names.isdisjoint(_DIMENSION_ARGUMENTS)


def _as_vector(target: Any) -> Callable[..., Any]:
    """`target` on a vector of one element, its results in the shapes that the scalar gives."""
    with_index = target._schema.name.startswith(_WITH_INDEX)

    def run(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        vectors = [_vector(arg) if with_index else arg for arg in args]
        results = target(tensor.reshape(1), *vectors, **kwargs)
        with disable_proxy_modes_tracing():
            wanted = target(fake_tensor((), None, tensor.dtype), *args, **kwargs)
        return pytree.tree_map(lambda result, like: result.reshape(like.shape), results, wanted)

    return run


def _vector(value: Any) -> Any:
    return value.reshape(1) if isinstance(value, torch.Tensor) and value.dim() == 0 else value
