"""What makes two calls of a kernel the same Program: the kernel, its grid, and its arguments' forms."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from neuron_tools.nki.arguments import find_adapter
from neuron_tools.nki.kernel import Kernel


def signature(kernel: Kernel, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Hashable:
    """A key for the kernel's Program: equal for calls that trace alike."""
    return (
        id(kernel.func),
        tuple(str(axis) for axis in kernel.grid),
        _form(arguments),
        _form(dict(keywords)),
    )


def _form(value: Any) -> Hashable:
    adapter = find_adapter(value)
    if adapter is not None:
        return ("array", tuple(adapter.shape(value)), str(adapter.dtype(value)))
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, *(_form(item) for item in value))
    if isinstance(value, dict):
        return ("dict", *((str(key), _form(item)) for key, item in value.items()))
    if is_dataclass(value) and not isinstance(value, type):
        return (type(value).__name__, *(_form(getattr(value, field.name)) for field in fields(value)))
    try:
        hash(value)
    except TypeError:
        return ("object", id(value))
    return (type(value).__name__, value)
