"""Modules that AWS left out of the repositories it published, though their other modules import them.

They have to do with hosts of AWS's own (locks of shared machines, analyses of internal traces). A stand-in
imports; whatever is taken from it is a class that does nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

NAMES = ("test.utils.scripts", "test.utils.scripts.remote_lock_scripts", "test.utils.perf_analysis_private")


class AbsentModules:
    """Finds the modules of NAMES where no file has them."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of an empty stand-in; None for every other name."""
        return ModuleSpec(name, self, is_package=True) if name in NAMES else None  # type: ignore[arg-type]  # a finder in all but its class

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """A module that has every name."""
        return _Placeholder(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run."""


class _Placeholder(ModuleType):
    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def install() -> None:
    """Let the stand-ins be imported in this process."""
    sys.meta_path.append(AbsentModules())
