"""Kernel calls as text: all that tracing the kernel again takes, without the data of its arrays."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from neuron_tools.nki.abstract import AbstractArray
from neuron_tools.nki.arguments import find_adapter
from neuron_tools.nki.dtypes import DType, as_dtype
from neuron_tools.records.kernel_source import KernelLaunch

_PLAIN = (bool, int, float, str)


class _UnwritableError(TypeError):
    """An argument has no text that it can be made from again."""


def describe_launch(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    keywords: Mapping[str, Any],
    grid: tuple[int, ...] = (),
    cores: int = 1,
) -> KernelLaunch | None:
    """A call as it can be made again; None where an argument or the function cannot be found again."""
    plain = inspect.unwrap(function)
    code = getattr(plain, "__code__", None)
    name = getattr(plain, "__qualname__", "")
    if code is None or "<" in name:
        return None
    try:
        text = json.dumps([[_written(each) for each in arguments], _written_items(keywords)])
    except _UnwritableError:
        return None
    module = str(getattr(plain, "__module__", ""))
    return KernelLaunch(module, name, code.co_filename, code.co_firstlineno, text, grid, cores)


def read_arguments(text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments; arrays without values.

    Raises:
        ValueError, TypeError, KeyError: The text is none of `describe_launch`.
    """
    arguments, keywords = json.loads(text)
    return tuple(_read(each) for each in arguments), {name: _read(each) for name, each in keywords.items()}


def _written(value: Any) -> Any:
    """A value as JSON: plain ones as they are, everything else as an object with one entry, its kind."""
    if value is None or type(value) in _PLAIN:
        return value
    if isinstance(value, DType):
        return {"dtype": str(value)}
    adapter = find_adapter(value)
    if adapter is not None:
        shape = [int(extent) for extent in adapter.shape(value)]
        return {"array": [shape, str(as_dtype(adapter.dtype(value)))]}
    if type(value) is tuple:
        return {"tuple": [_written(each) for each in value]}
    if type(value) is list:
        return {"list": [_written(each) for each in value]}
    if type(value) is dict:
        return {"dict": _written_items(value)}
    raise _UnwritableError(type(value).__name__)


def _written_items(items: Mapping[Any, Any]) -> dict[str, Any]:
    if not all(isinstance(name, str) for name in items):
        raise _UnwritableError("dict")
    return {name: _written(value) for name, value in items.items()}


def _read(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, held),) = value.items()
    if kind == "dtype":
        return as_dtype(held)
    if kind == "array":
        return AbstractArray(tuple(held[0]), as_dtype(held[1]))
    if kind == "dict":
        return {name: _read(each) for name, each in held.items()}
    made = [_read(each) for each in held]
    return tuple(made) if kind == "tuple" else made
