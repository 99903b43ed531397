"""`libnrt.so` for programs that load it with ctypes where AWS's is absent.

`ctypes.CDLL` of such a path gives `neuron_tools.frontends.nrt.RuntimeLibrary`; every other library is loaded
as ever. ctypes is changed when a program imports it, not before.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_LIBRARY = "libnrt.so"
_CTYPES = "ctypes"
_offers: set[str] = set()
"""Names of the libraries that are given: a class cannot lose a `__new__` again that it was given."""


def offer() -> Callable[[], None]:
    """Give the library to whoever loads it.

    Returns:
        A function that ends that.
    """
    _offers.add(_LIBRARY)
    loaded = sys.modules.get(_CTYPES)
    if loaded is not None:
        _change(loaded)
    elif not any(isinstance(finder, _OnImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OnImport())
    return _end


class _OnImport:
    """Changes ctypes when it is imported; finds nothing itself."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of ctypes, whose loader changes it."""
        if name != _CTYPES:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                _change(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]  # of this one import
        return spec


def _change(module: ModuleType) -> None:
    library = module.CDLL
    if "__new__" not in vars(library):
        library.__new__ = staticmethod(_new)


def _new(cls: type[Any], name: Any = None, *_arguments: Any, **_options: Any) -> Any:
    """The runtime library for its name where there is no such file; else a new, empty `CDLL`."""
    wanted = os.path.basename(os.fspath(name)) if isinstance(name, (str, os.PathLike)) else ""
    if str(wanted).split(".so")[0] + ".so" not in _offers or _is_there(os.fspath(name)):
        return object.__new__(cls)
    from neuron_tools.frontends.nrt import RuntimeLibrary

    return RuntimeLibrary()


def _is_there(path: str) -> bool:
    """Whether the system loads that library itself; it searches its own folders for a mere name."""
    from _ctypes import dlopen

    try:
        dlopen(path, os.RTLD_LAZY)
    except OSError:
        return os.path.exists(path)
    return True


def _end() -> None:
    _offers.clear()
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _OnImport)]
