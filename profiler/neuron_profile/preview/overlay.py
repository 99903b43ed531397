"""Imports that see other texts than the files have: those of an editor, or those that were captured."""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from neuron_tools.errors import UsageError

_SCRIPT = "__main__"


def import_with(texts: Mapping[str, str]) -> None:
    """Let this process import these texts instead of what stands in the files.

    Args:
        texts: Text by absolute path.
    """
    plain = importlib.machinery.SourceFileLoader.get_code

    def get_code(self: Any, name: str) -> CodeType | None:
        path = os.path.abspath(self.get_filename(name))
        if path not in texts:
            return plain(self, name)
        code: CodeType = compile(texts[path], path, "exec", dont_inherit=True)
        return code

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


def load(module: str, file: str) -> ModuleType:
    """The module with a function that was captured, imported afresh; a script's own block does not run.

    Raises:
        UsageError: There is no such file, and no text of it.
    """
    path = Path(file)
    script = module == _SCRIPT
    root = path.parent if script else _root(module, path)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    name = path.stem if script else module
    sys.modules.pop(name, None)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise UsageError(f"{file} is not there: open the folder that was captured.") from None


def _root(module: str, path: Path) -> Path:
    """The folder from which a module of a file is imported."""
    parts = module.split(".")
    depth = len(parts) if path.stem == "__init__" else len(parts) - 1
    return path.parents[depth] if depth < len(path.parents) else path.parent
