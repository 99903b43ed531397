"""Describes real operator calls as the device's core does, for tests of lowering."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def describe(value: Any) -> Any:
    """One argument as the device passes it."""
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        return ("tensor", dtype, tuple(value.shape), tuple(value.stride()), 0, True)
    if isinstance(value, torch.dtype):
        return ("dtype", str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return ("device", "neuron:0")
    if isinstance(value, torch.layout):
        return ("layout", 0)
    if isinstance(value, torch.memory_format):
        return ("memory_format", 0)
    if isinstance(value, (list, tuple)):
        return ("list", tuple(describe(item) for item in value))
    return value


def describe_call(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments of a call, in schema order."""
    entries = []
    for index, argument in enumerate(target._schema.arguments):
        given = kwargs.get(argument.name, argument.default_value)
        entries.append(describe(args[index] if index < len(args) else given))
    return tuple(entries)


class SignatureRecorder(TorchDispatchMode):
    """Collects each distinct operator signature that runs inside it."""

    def __init__(self) -> None:
        super().__init__()
        self.signatures: dict[tuple[str, str], tuple[Any, ...]] = {}

    def __torch_dispatch__(self, target, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        entries = describe_call(target, args, kwargs)
        self.signatures[(target.name(), repr(entries))] = entries
        return target(*args, **kwargs)
