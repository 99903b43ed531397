"""Operators on lists of tensors (`_foreach_*`, fused optimizers) as one call per tensor.

Per-tensor calls of equal shapes share one traced expansion, so a list of hundreds costs little more than one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

import torch

from neuron_tools.frontends.torch_lowering import optimizer_steps


class Calls(Protocol):
    """What makes the calls: the graph builder."""

    def call(self, target: Any, args: Any, kwargs: Any, row: int) -> Any:
        """Add one call and return its result."""

    def write(self, node: Any) -> None:
        """Remember the new value of an argument."""


PerTensorCalls = Callable[..., Any]  # (calls, row, args, kwargs) -> result


@functools.cache
def per_tensor_calls(target: Any) -> PerTensorCalls | None:
    """A function `(calls, row, args, kwargs)` that makes `target`'s per-tensor calls, or None."""
    if not isinstance(target, torch._ops.OpOverload):
        return None
    name = target._schema.name.split("::")[-1]
    base, in_place = name.rstrip("_"), name.endswith("_")
    if base.startswith("_foreach_"):
        function = _foreach_function(base.removeprefix("_foreach_"))
        return functools.partial(_foreach, function, target, in_place) if function is not None else None
    step = optimizer_steps.STEPS.get(base)
    return functools.partial(_optimizer, step, target) if step is not None and in_place else None


def _foreach(
    function: Any, target: Any, in_place: bool, calls: Calls, row: int, args: Any, kwargs: Any
) -> tuple[Any, ...]:
    values = [value for name, value in bind(target, args, kwargs).items() if name != "non_blocking"]
    length = next(len(value) for value in values if isinstance(value, (list, tuple)))
    results = [
        calls.call(function, [_item(value, index) for value in values], {}, row) for index in range(length)
    ]
    if not in_place:
        return tuple(results)
    for result in results:
        calls.write(result)
    return ()


def _optimizer(step: Any, target: Any, calls: Calls, row: int, args: Any, kwargs: Any) -> tuple[Any, ...]:
    """One optimizer step per parameter; `step` returns the new values of what it writes."""
    bound = bind(target, args, kwargs)
    for index in range(len(bound["self"])):
        values = [_item(value, index) for value in bound.values()]
        for result in calls.call(step, values, {}, row):
            calls.write(result)
    return ()


def bind(target: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Arguments by schema name, in schema order, defaults filled in."""
    bound = {}
    for index, argument in enumerate(target._schema.arguments):
        if index < len(args):
            bound[argument.name] = args[index]
        else:
            bound[argument.name] = kwargs.get(argument.name, argument.default_value)
    return bound


def _item(value: Any, index: int) -> Any:
    """Element `index` of a list; an empty list (an optional state that is off) is None."""
    if isinstance(value, (list, tuple)):
        return value[index] if value else None
    return value


def _add(tensor: Any, other: Any, alpha: Any = 1) -> Any:
    return torch.add(tensor, other, alpha=alpha)


def _subtract(tensor: Any, other: Any, alpha: Any = 1) -> Any:
    return torch.sub(tensor, other, alpha=alpha)


def _add_quotient(tensor: Any, numerator: Any, denominator: Any, value: Any = 1) -> Any:
    return torch.addcdiv(tensor, numerator, denominator, value=value)


def _add_product(tensor: Any, first: Any, second: Any, value: Any = 1) -> Any:
    return torch.addcmul(tensor, first, second, value=value)


def _clone(tensor: Any, memory_format: Any = None) -> Any:
    return torch.clone(tensor)


def _copy(tensor: Any, source: Any) -> Any:
    return source.to(tensor.dtype).expand(tensor.shape).clone()


def _norm(tensor: Any, order: Any = 2, dtype: Any = None) -> Any:
    return torch.linalg.vector_norm(tensor, order, dtype=dtype)


def _power_sum(tensor: Any, order: Any = 2, dtype: Any = None) -> Any:
    return torch.sum(torch.pow(torch.abs(tensor), order), dtype=dtype)


def _maximum(tensor: Any, other: Any) -> Any:
    return torch.clamp_min(tensor, other)


def _minimum(tensor: Any, other: Any) -> Any:
    return torch.clamp_max(tensor, other)


_FOREACH_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": _add,
    "sub": _subtract,
    "addcdiv": _add_quotient,
    "addcmul": _add_product,
    "clone": _clone,
    "copy": _copy,
    "maximum": _maximum,
    "minimum": _minimum,
    "max": torch.amax,
    "norm": _norm,
    "powsum": _power_sum,
    "zero": torch.zeros_like,
}


def _foreach_function(base: str) -> Any:
    return _FOREACH_FUNCTIONS.get(base) or getattr(torch, base, None)
