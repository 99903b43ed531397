"""Replaces attributes of JAX's modules and classes, and puts them back."""

from __future__ import annotations

from typing import Any

_MISSING = object()


class Patches:
    """Attributes replaced so far, in order."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any]] = []

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute of a module or class.

        Raises:
            AttributeError: There is none of that name: this version of JAX is not one we know.
        """
        getattr(owner, name)
        self._replaced.append((owner, name, vars(owner).get(name, _MISSING)))
        setattr(owner, name, value)

    def undo(self) -> None:
        """Put back what stood there, last first."""
        while self._replaced:
            owner, name, value = self._replaced.pop()
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
