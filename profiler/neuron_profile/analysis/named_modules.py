"""Modules that the text of a file gives names, and which of them it freezes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set

from neuron_profile.analysis.trained_modules import classes_of
from neuron_tools.frozen import frozen


@frozen
class NamedModules:
    """Names of a file.

    Attributes:
        names: Those that stand for a module made by calling a class.
        frozen: Those of them whose parameters want no gradients.
        trained: Names that an optimizer is given, or that are made as parameters.
    """

    names: frozenset[str]
    frozen: frozenset[str]
    trained: frozenset[str]

    def is_frozen(self, value: ast.expr, reads: Set[str]) -> bool:
        """Whether a value is what a frozen module makes of tensors that nothing trains."""
        called = value.func if isinstance(value, ast.Call) else None
        if not isinstance(called, ast.Name):
            return False
        return called.id in self.frozen and self.trained.isdisjoint(reads)


def named_modules(tree: ast.Module) -> NamedModules:
    """The modules of a file's top level and functions."""
    nodes = list(ast.walk(tree))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    names = frozenset(name for name, made in classes_of(nodes) if made[:1].isupper())
    frozen = {_root(each.func) for each in calls if _freezes(each)} | {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and any(map(_freezes, _chain(node.value)))
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return NamedModules(names, names & frozen, frozenset(_trained(nodes)))


def _freezes(call: ast.Call) -> bool:
    """Whether this is `MODULE.requires_grad_(False)`."""
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_"
    only = call.args[0] if len(call.args) == 1 else None
    return is_method and isinstance(only, ast.Constant) and only.value is False


def _chain(node: ast.expr) -> Iterator[ast.Call]:
    """The calls of `f(...).g(...).h(...)`, from the outside."""
    while isinstance(node, ast.Call):
        yield node
        node = node.func.value if isinstance(node.func, ast.Attribute) else node.func


def _root(node: ast.expr) -> str:
    """The name alone that a method is called of; "" for a part of it, which says nothing of the rest."""
    owner = node.value if isinstance(node, ast.Attribute) else node
    return owner.id if isinstance(owner, ast.Name) else ""


def _trained(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Call) and "optim" in ast.unparse(node.func):
            yield from (each.id for each in ast.walk(node) if isinstance(each, ast.Name))
        elif isinstance(node, ast.Assign) and "Parameter" in ast.unparse(node.value):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
