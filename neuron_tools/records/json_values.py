"""Frozen dataclasses as JSON and back, by their annotations: a new field needs no new code here."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints


def encode(value: Any) -> Any:
    """A value as JSON has it: dataclasses become objects, tuples lists, enumerations numbers."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    return int(value) if isinstance(value, IntEnum) else value


def decode(kind: Any, value: Any) -> Any:
    """The value of type `kind` that `encode` made `value` of.

    Args:
        kind: A class or a parametrised type: dataclass, IntEnum, tuple, Mapping, union with None, or plain.
        value: What JSON gave.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: It is no such value.
    """
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return None if value is None else decode(_not_none(kind), value)
    if origin is tuple:
        return _tuple(get_args(kind), value)
    if origin is not None:
        return dict(value) if issubclass(origin, Mapping) else value
    if dataclasses.is_dataclass(kind):
        return _record(kind, value)
    if isinstance(kind, type) and issubclass(kind, (IntEnum, int, float, str)):
        return kind(value)
    return value


def _not_none(kind: Any) -> Any:
    return next(part for part in get_args(kind) if part is not type(None))


def _tuple(parts: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    if len(parts) == 2 and parts[1] is Ellipsis:
        return tuple(decode(parts[0], item) for item in value)
    return tuple(decode(part, item) for part, item in zip(parts, value, strict=True))


def _record(kind: Any, value: Mapping[str, Any]) -> Any:
    hints = field_types(kind)
    return kind(**{name: decode(hints[name], item) for name, item in value.items() if name in hints})


@cache
def field_types(kind: Any) -> Mapping[str, Any]:
    """The annotation of each field of a dataclass."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}
