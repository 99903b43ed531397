"""Imports that see other texts than the files have: those of an editor, or those that were captured."""

from __future__ import annotations

import ast
import importlib
import importlib.machinery
import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from neuron_tools.errors import UsageError

SCRIPT = "__main__"


def import_with(texts: Mapping[str, str], scripts: Collection[str] = ()) -> None:
    """Let this process import these texts instead of what stands in the files.

    Args:
        texts: Text by absolute path.
        scripts: Files that were run: of these only what defines something is executed.
    """
    plain = importlib.machinery.SourceFileLoader.get_code

    def get_code(self: Any, name: str) -> CodeType | None:
        path = os.path.abspath(self.get_filename(name))
        if path not in texts and path not in scripts:
            return plain(self, name)
        text = texts[path] if path in texts else self.get_source(name)
        tree = ast.parse(text, path)
        if path in scripts:
            tree.body = _definitions(tree.body)
        code: CodeType = compile(tree, path, "exec", dont_inherit=True)
        return code

    loader: Any = importlib.machinery.SourceFileLoader
    loader.get_code = get_code


def _definitions(body: list[ast.stmt]) -> list[ast.stmt]:
    """A script's statements up to its last function or class, and constants behind: the rest is its work."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    end = max((number for number, each in enumerate(body, 1) if isinstance(each, kinds)), default=len(body))
    return body[:end] + [each for each in body[end:] if _is_constant(each)]


def _is_constant(statement: ast.stmt) -> bool:
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
        return False
    try:
        ast.literal_eval(statement.value)
    except (ValueError, TypeError, SyntaxError):
        return False
    return True


def load(module: str, file: str) -> ModuleType:
    """The module with a function that was captured, imported afresh; a script's own block does not run.

    Raises:
        UsageError: There is no such file, and no text of it.
    """
    path = Path(file)
    script = module == SCRIPT
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
