"""What the text of a function says about a line in it: that it gives the same in every call.

Such a line reads constants of its file, what its module was made with, and of its arguments no more than
their shapes, types and devices. Only plain cases are told.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence, Set

from neuron_profile.analysis.loop_sources import LoopLine, changed_names, is_pure, is_training, methods_of
from neuron_profile.analysis.unread_results import unread_lines
from neuron_tools.frozen import frozen

Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_OUTLINES = frozenset({"device", "dtype", "shape", "ndim", "size", "dim", "numel", "is_cuda"})
"""Attributes of a tensor that do not tell its values."""
_BUILT_IN = frozenset({"len", "int", "float", "max", "min", "range", "True", "False", "None"})


@frozen
class _Known:
    """Names that do not change while a program runs.

    Attributes:
        constants: Names of the file.
        kept: Attributes of `self` that are numbers, shapes, and what nothing trains.
    """

    constants: frozenset[str]
    kept: frozenset[str]


def function_lines(lines: Sequence[str]) -> dict[int, LoopLine]:
    """Assignments outside of loops that give the same in every call, or that nobody reads, by line.

    None of a text that is no Python.
    """
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    is_trained = any(is_training(node) for node in ast.walk(tree))
    constants = frozenset(_constants(tree, is_trained))
    found = {line.line: line for line in unread_lines(tree)}
    for owner in (node for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.ClassDef))):
        kept = frozenset(_kept(owner, is_trained)) if isinstance(owner, ast.ClassDef) else frozenset()
        for function in owner.body:
            if isinstance(function, _FUNCTIONS) and function.name != "__init__":
                found.update(_lines(function, _Known(constants, kept)))
    return found


def _constants(tree: ast.Module, is_trained: bool) -> Iterator[str]:
    """Names that the file gives a value once, at its top level; where it trains something, without a call."""
    changed = Counter(changed_names(tree))
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((each.asname or each.name).partition(".")[0] for each in node.names)
        elif isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Assign) and not (is_trained and _calls(node.value)):
            names = (each.id for each in node.targets if isinstance(each, ast.Name))
            yield from (name for name in names if changed[name] == 1)


def _kept(owner: ast.ClassDef, is_trained: bool) -> Iterator[str]:
    """Attributes that only `__init__` sets; where something is trained, those that no call made."""
    inside = [each for each in owner.body if isinstance(each, _FUNCTIONS) and each.name == "__init__"]
    outside = [each for each in owner.body if each not in inside]
    changed = {name for each in outside for name in _own_attributes(each)}
    for function in inside:
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and not (is_trained and _calls(node.value)):
                names = {name for target in node.targets for name in _own_attributes(target)}
                yield from names - changed


def _own_attributes(body: ast.AST) -> Iterator[str]:
    """Attributes of `self` that a node sets, or changes in place."""
    changed = filter(None, map(_changed, ast.walk(body)))
    return filter(None, map(_own_attribute, changed))


def _changed(node: ast.AST) -> ast.expr | None:
    """What a node sets, or changes in place, where that is no plain name."""
    if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
        return node
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute) and function.attr.endswith("_"):
        return function.value
    return None


def _own_attribute(node: ast.expr) -> str:
    """Of `self.x`, and of anything inside it, x; else ""."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(node, ast.Attribute) and _is_self(node.value):
            return node.attr
        node = node.func if isinstance(node, ast.Call) else node.value
    return ""


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _calls(value: ast.expr) -> bool:
    return any(isinstance(node, ast.Call) for node in ast.walk(value))


def _lines(function: Function, known: _Known) -> Iterator[tuple[int, LoopLine]]:
    """The lines of a function in their order: a name may be made from those before it."""
    changed = Counter(changed_names(function))
    same: set[str] = set()
    for node in _assignments(function.body):
        names = {
            each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)
        }
        if any(changed[name] != 1 for name in names) or not _is_same(node.value, known, same):
            continue
        same |= names
        target = node.targets[0]
        if isinstance(target, ast.Name) and is_pure(node.value):
            last = function.end_lineno or function.lineno
            line = LoopLine(
                node.lineno, target.id, methods_of(node.value), True, function.lineno, last, False, True
            )
            yield node.lineno, line


def _assignments(body: Sequence[ast.stmt]) -> Iterator[ast.Assign]:
    for node in body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            yield node
        elif isinstance(node, ast.With):
            yield from _assignments(node.body)


def _is_same(node: ast.AST, known: _Known, same: Set[str]) -> bool:
    """Whether an expression reads nothing but what does not change."""
    if isinstance(node, ast.Attribute):
        if node.attr in _OUTLINES and isinstance(node.value, ast.Name):
            return True
        if _is_self(node.value):
            return node.attr in known.kept
    if isinstance(node, ast.Name):
        return node.id in known.constants or node.id in same or node.id in _BUILT_IN
    return all(_is_same(each, known, same) for each in ast.iter_child_nodes(node))
