"""Structure of kernels: slices, objects that kernels may pass around, and hints."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from neuron_tools.nki.registers import VirtualRegister, register_value
from neuron_tools.nki.tracer import running


class NKIObject:
    """Base of classes whose objects kernels pass around.

    With or without `@dataclass`, a class gets the initializer that the NKI language guide describes ("Class
    Support"), unless it has its own: every annotated or assigned name is a parameter, None by default.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" not in vars(cls) and not _is_python_only(cls):
            type.__setattr__(cls, "__init__", _initializer(_fields(cls)))

    def __post_init__(self) -> None:
        """Called once the fields are set."""


def _is_python_only(cls: type) -> bool:
    """Whether the class uses what only `dataclasses` knows: it makes the initializer then."""
    texts = [str(annotation) for annotation in vars(cls).get("__annotations__", {}).values()]
    return any("InitVar" in text or "KW_ONLY" in text for text in texts)


def _fields(cls: type) -> dict[str, Callable[[], Any]]:
    """What makes the default of each field, base classes' first."""
    fields: dict[str, Callable[[], Any]] = {}
    for base in reversed(cls.__mro__):
        own = vars(base).get("__nki_fields__") or (_own_fields(base) if base is cls else {})
        fields.update(own)
    cls.__nki_fields__ = fields  # type: ignore[attr-defined]  # for `fields_of` alone
    return fields


def _own_fields(cls: type) -> dict[str, Callable[[], Any]]:
    annotated = {
        name: annotation for name, annotation in vars(cls).get("__annotations__", {}).items()
        if "ClassVar" not in str(annotation) and typing.get_origin(annotation) is not typing.ClassVar
    }  # fmt: skip
    assigned = [name for name, value in vars(cls).items() if _is_field(name, value)]
    names = [*annotated, *(name for name in assigned if name not in vars(cls).get("__annotations__", {}))]
    return {name: _default(vars(cls).get(name)) for name in names}


def _is_field(name: str, value: Any) -> bool:
    """Whether an un-annotated name of a class is data: no method, property or nested class."""
    return not name.startswith("__") and not callable(value) and not hasattr(value, "__get__")


def _default(value: Any) -> Callable[[], Any]:
    if isinstance(value, dataclasses.Field):
        if value.default_factory is not dataclasses.MISSING:
            return value.default_factory
        value = None if value.default is dataclasses.MISSING else value.default
    return lambda: value


def _initializer(fields: dict[str, Callable[[], Any]]) -> Callable[..., None]:
    names = list(fields)

    def __init__(self: Any, *values: Any, **named: Any) -> None:
        kind = type(self).__name__
        if len(values) > len(names):
            raise TypeError(f"{kind} has {len(names)} fields, but {len(values)} values were given.")
        given = dict(zip(names, values))
        for name in named:
            if name not in fields or name in given:
                reason = "was given twice" if name in given else f"is not one; it has {', '.join(names)}"
                raise TypeError(f"{kind} takes its fields as arguments: {name!r} {reason}.")
        given.update(named)
        for name, default in fields.items():
            object.__setattr__(self, name, given[name] if name in given else default())
        self.__post_init__()

    return __init__


def ds(start: Any, size: Any) -> slice:
    """The slice of `size` elements from `start`; `start` may be a register."""
    if isinstance(start, VirtualRegister):
        start = start.read()
    if not hasattr(start, "extents"):
        start = register_value(start)
    return slice(start, start + size)


@contextmanager
def no_reorder(*_arguments: Any, **_options: Any) -> Iterator[None]:
    """Keep the instructions of the block in order."""
    trace = running()
    first = trace.row_count if trace is not None else 0
    yield
    if trace is not None:
        trace.ordered.append((first, trace.row_count))
