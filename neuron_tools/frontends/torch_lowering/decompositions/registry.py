"""Where decompositions of our own are registered, and small helpers that several of them share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

OWN: dict[Any, Callable[..., Any]] = {}
REFUSED: dict[Any, Callable[..., Any]] = {}
REPLACED: dict[Any, Callable[..., Any]] = {}
COMPLEX: dict[Any, Callable[..., Any]] = {}


def decomposes(*overloads: Any) -> Callable[[Function], Function]:
    """Register a decomposition for operator overloads; its arguments are theirs."""
    return _registering(OWN, overloads)


def decomposes_refused(*overloads: Any) -> Callable[[Function], Function]:
    """Register a decomposition for the shapes of an operator that torch-mlir does not lower."""
    return _registering(REFUSED, overloads)


def replaces(*overloads: Any) -> Callable[[Function], Function]:
    """Register what is traced by itself in an operator's place.

    For decompositions that differentiate, which only the outermost level of a trace can, and for operators
    that write their arguments and that functionalisation does not know: the function returns the new values.
    An operator of another package is given by its name, since it may not be there (yet).
    """
    return _registering(REPLACED, overloads)


def decomposes_complex(*overloads: Any) -> Callable[[Function], Function]:
    """Register what operators are where complex tensors take part: these come and go as `Pairs`.

    A function returns NotImplemented for calls that it has no rule for.
    """
    return _registering(COMPLEX, overloads)


def _registering(
    table: dict[Any, Callable[..., Any]], overloads: tuple[Any, ...]
) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        table.update(dict.fromkeys(overloads, function))
        return function

    return register
