"""Loads a kernel's file with other values for its constants, as if they stood in it."""

from __future__ import annotations

import ast
import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from neuron_tools.errors import UsageError


@lru_cache(maxsize=64)
def load_module(path: Path, constants: tuple[tuple[str, Any], ...] = ()) -> ModuleType:
    """Run a file as a module.

    Args:
        constants: Name and value of each top-level assignment to replace.

    Raises:
        UsageError: The file assigns no such name.
    """
    tree = ast.parse(path.read_text(), str(path))
    for name, value in constants:
        assigned = constant_value(tree, name)
        if assigned is None:
            raise UsageError(f"{path} has no constant {name}: assign it at the top level of the file.")
        _replace(tree, assigned, ast.copy_location(ast.Constant(value), assigned))
    module = ModuleType(f"tuned_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(ast.fix_missing_locations(tree), str(path), "exec"), module.__dict__)
    return module


def constant_value(tree: ast.Module, name: str) -> ast.expr | None:
    """The value that a module assigns to a name at its top level; of `A, B = 1, 2`, that of the name."""
    for statement in tree.body:
        if isinstance(statement, ast.AnnAssign) and _is(statement.target, name):
            return statement.value
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if _is(target, name):
                    return statement.value
                if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
                    for each, value in zip(target.elts, statement.value.elts):
                        if _is(each, name):
                            return value
    return None


def _is(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Name) and target.id == name


def _replace(tree: ast.Module, old: ast.expr, new: ast.expr) -> None:
    class Replacement(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return new if node is old else super().generic_visit(node)

    Replacement().visit(tree)
