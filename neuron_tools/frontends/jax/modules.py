"""Names for modules: operations of flax's nnx modules and of equinox's carry their attribute path.

flax's linen names its scopes itself; nnx names nothing, and equinox only classes. While a capture runs, the
`__call__` of every class of theirs opens a `jax.named_scope` with the attribute path below the module
that called it.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from neuron_tools.frontends.jax.patches import Patches
from neuron_tools.frozen import frozen


@frozen
class ModuleLibrary:
    """A library of modules.

    Attributes:
        package: What the program imports.
        base: The class of all its modules, from the package.
        parts: (attribute path, part) of everything inside a module.
    """

    package: str
    base: Callable[[Any], type]
    parts: Callable[[Any], Iterator[tuple[tuple[Any, ...], Any]]]

    def path_below(self, owner: Any, module: Any) -> str:
        """Attribute path from a module to another inside it, with slashes; "" where it is not inside."""
        found = (path for path, part in self.parts(owner) if part is module)
        return "/".join(str(name) for name in next(found, ()))


def _nnx_parts(owner: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    from flax import nnx

    yield from nnx.iter_graph(owner)


def _equinox_parts(owner: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Modules in the fields of a module, through lists, tuples and dictionaries."""
    if isinstance(owner, (list, tuple)):
        named: list[tuple[Any, Any]] = list(enumerate(owner))
    elif isinstance(owner, dict):
        named = list(owner.items())
    else:
        fields = getattr(type(owner), "__dataclass_fields__", ())
        named = [(name, getattr(owner, name, None)) for name in fields]
    for name, part in named:
        if isinstance(part, (list, tuple, dict)) or hasattr(type(part), "__dataclass_fields__"):
            yield (*path, name), part
            yield from _equinox_parts(part, (*path, name))


LIBRARIES = (
    ModuleLibrary("flax.nnx", lambda nnx: nnx.Module, _nnx_parts),
    ModuleLibrary("equinox", lambda equinox: equinox.Module, _equinox_parts),
)


class ModuleScopes:
    """Wraps the modules' calls while it is installed; does nothing for libraries that are not imported."""

    def __init__(self) -> None:
        self._patches = Patches()
        self._calls = threading.local()
        self._wrapped: set[type] = set()

    def install(self) -> None:
        """Wrap the classes that exist; those made later follow when they are made."""
        for library in LIBRARIES:
            package = sys.modules.get(library.package)
            if package is None:
                continue
            base = library.base(package)
            self._patches.replace(base, "__init_subclass__", classmethod(self._making(library, base)))
            for known in _subclasses(base):
                self._wrap(library, known)

    def uninstall(self) -> None:
        """Take the wrappers out."""
        self._patches.undo()

    def _making(self, library: ModuleLibrary, base: Any) -> Callable[..., None]:
        made = base.__init_subclass__.__func__ if hasattr(base.__init_subclass__, "__func__") else None

        def wrapper(cls: type, *arguments: Any, **options: Any) -> None:
            if made is not None:
                made(cls, *arguments, **options)
            else:
                super(base, cls).__init_subclass__(*arguments, **options)  # type: ignore[misc]  # object's takes none, others' may
            self._wrap(library, cls)

        return wrapper

    def _wrap(self, library: ModuleLibrary, cls: type) -> None:
        if "__call__" in vars(cls) and cls not in self._wrapped:
            self._wrapped.add(cls)
            self._patches.replace(cls, "__call__", self._scoped(library, vars(cls)["__call__"]))

    def _scoped(self, library: ModuleLibrary, call: Callable[..., Any]) -> Callable[..., Any]:
        import jax

        @functools.wraps(call)
        def wrapper(module: Any, *arguments: Any, **options: Any) -> Any:
            callers = self._callers()
            scope = library.path_below(callers[-1], module) if callers else type(module).__name__
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


def _subclasses(cls: type) -> Iterator[type]:
    children: list[type] = cls.__subclasses__()
    for child in children:
        yield child
        yield from _subclasses(child)
