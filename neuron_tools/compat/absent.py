"""Stand-ins for what libraries import of AWS's packages and never reach: using one says what is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neuron_tools.errors import NeuronToolsError


class AbsentError(NeuronToolsError, RuntimeError):
    """A part of AWS's packages is used that is not there."""


class Absent:
    """Stands for a name of AWS's; it can be imported and named in annotations.

    Args:
        name: The whole name.
        reason: Why it is not there, and what to use instead.
    """

    def __init__(self, name: str, reason: str) -> None:
        self._name, self._reason = name, reason

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self._name}.{name}", self._reason)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Say that it is not there."""
        raise AbsentError(f"{self._name} is not there: {self._reason}")

    def __getitem__(self, grid: Any) -> Absent:
        """Return itself: a kernel is called as `kernel[grid](...)`."""
        return self

    def __iter__(self) -> Any:
        """Refuse: without this, Python would iterate forever over what can be indexed."""
        raise TypeError(f"{self._name} is not there, so it cannot be iterated over: {self._reason}")

    def __or__(self, other: Any) -> Any:
        return Any

    __ror__ = __or__

    def __repr__(self) -> str:
        return f"<{self._name}, which is not there>"


def names_of(module: str, reason: str) -> Callable[[str], Absent]:
    """The `__getattr__` of a module of which nothing is there."""

    def find(name: str) -> Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{module}.{name}", reason)

    return find
