"""An application whose callbacks get values of the types that they ask for, whatever a request says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from dash import Dash

from neuron_tools.errors import NeuronToolsError

MOST_DEEP = 8


class MalformedValueError(NeuronToolsError):
    """A request gives a callback a value that no page of ours has."""


class CheckedApp(Dash):
    """A Dash application whose callbacks are called with values of the annotated types only."""

    def callback(self, *arguments: Any, **named: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """A decorator as Dash's, for functions whose parameters are annotated."""
        register = super().callback(*arguments, **named)
        return lambda function: register(checked(function))


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which refuses positional values that are not of the annotated types.

    Raises:
        MalformedValueError: By the returned function.
    """
    hints = get_type_hints(function)
    expected = [hints.get(name, Any) for name in signature(function).parameters]

    @wraps(function)
    def call(*values: Any) -> Any:
        if len(values) != len(expected) or not all(map(fits, values, expected)):
            raise MalformedValueError("The request is malformed.")
        return function(*values)

    return call


def fits(value: Any, hint: Any, deep: int = 0) -> bool:
    """Whether a value of JSON is of an annotated type; whole numbers are floats, truth values no numbers."""
    if hint is Any or deep > MOST_DEEP:
        return True
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(fits(value, each, deep + 1) for each in arguments)
    if origin is Literal:
        return value in arguments
    kind = origin or hint
    if kind in (list, tuple, Sequence):
        return isinstance(value, list) and all(fits(each, (*arguments, Any)[0], deep + 1) for each in value)
    if kind in (dict, Mapping):
        of_values = arguments[1] if arguments else Any
        return isinstance(value, dict) and all(fits(each, of_values, deep + 1) for each in value.values())
    return _is_plain(value, kind)


def _is_plain(value: Any, kind: Any) -> bool:
    if kind is None or kind is NoneType:
        return value is None
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)
