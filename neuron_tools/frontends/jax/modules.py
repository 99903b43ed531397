"""Names for modules: operations of flax's nnx modules carry their attribute path.

flax's linen and equinox name their scopes themselves; nnx does not. While a capture runs, the `__call__` of
every nnx module class opens a `jax.named_scope` with the module's attribute path below the module that
called it.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from neuron_tools.frontends.jax.patches import Patches


class ModuleScopes:
    """Wraps nnx modules' calls while it is installed; does nothing until flax is imported."""

    def __init__(self) -> None:
        self._patches = Patches()
        self._calls = threading.local()
        self._wrapped: set[type] = set()

    def install(self) -> None:
        """Wrap the classes that exist; those made later follow when they are made."""
        nnx = sys.modules.get("flax.nnx")
        if nnx is None:
            return
        module = nnx.Module
        made = module.__init_subclass__.__func__
        self._patches.replace(module, "__init_subclass__", classmethod(self._making(made)))
        for known in _subclasses(module):
            self._wrap(known)

    def uninstall(self) -> None:
        """Take the wrappers out."""
        self._patches.undo()

    def _making(self, made: Callable[..., None]) -> Callable[..., None]:
        def wrapper(cls: type, *arguments: Any, **options: Any) -> None:
            made(cls, *arguments, **options)
            self._wrap(cls)

        return wrapper

    def _wrap(self, cls: type) -> None:
        if "__call__" in vars(cls) and cls not in self._wrapped:
            self._wrapped.add(cls)
            self._patches.replace(cls, "__call__", self._scoped(vars(cls)["__call__"]))

    def _scoped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        import jax

        @functools.wraps(call)
        def wrapper(module: Any, *arguments: Any, **options: Any) -> Any:
            callers = self._callers()
            scope = _path_below(callers[-1], module) if callers else type(module).__name__
            callers.append(module)
            try:
                with jax.named_scope(scope or type(module).__name__):
                    return call(module, *arguments, **options)
            finally:
                callers.pop()

        return wrapper

    def _callers(self) -> list[Any]:
        """Modules whose calls the thread is in, outermost first."""
        if not hasattr(self._calls, "modules"):
            self._calls.modules = []
        modules: list[Any] = self._calls.modules
        return modules


def _path_below(owner: Any, module: Any) -> str:
    """Attribute path from a module to another inside it, with slashes; "" where it is not inside."""
    from flax import nnx

    for path, node in nnx.iter_graph(owner):
        if node is module:
            return "/".join(str(part) for part in path)
    return ""


def _subclasses(cls: type) -> Iterator[type]:
    children: list[type] = cls.__subclasses__()
    for child in children:
        yield child
        yield from _subclasses(child)
