"""Runs a function right after a module is first imported; a program that never imports it pays nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class LateImport:
    """A finder that finds one module as Python does, and calls a function once it stands.

    Args:
        module: Full name of the module.
        action: Called with no argument.
    """

    def __init__(self, module: str, action: Callable[[], None]) -> None:
        self._module = module
        self._action = action

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's own spec with the action after its execution; None for every other name."""
        if name != self._module:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _ThenLoader(spec.loader, self._action)
        return spec


class _ThenLoader(Loader):
    def __init__(self, loader: Loader, action: Callable[[], None]) -> None:
        self._loader = loader
        self._action = action

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._action()


def after_import(module: str, action: Callable[[], None]) -> None:
    """Call `action` when `module` has been imported: now, if it has been already.

    Args:
        module: Full name of the module.
        action: Called with no argument, once.
    """
    if module in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, LateImport(module, action))
