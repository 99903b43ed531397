"""The functions of a Python source text: their names and the lines that they span."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuron_tools.frozen import frozen

KERNEL_DECORATORS = frozenset({"jit", "nki_jit", "baremetal", "benchmark", "profile", "kernel"})
"""Last parts of the names of decorators, under `nki`, that make a function a kernel."""


@frozen
class Function:
    """A function or method.

    Attributes:
        name: Qualified: "Model.forward".
        line: Of its `def`.
        first, last: Lines that it spans, decorators included.
        is_kernel: Whether it is an NKI kernel.
    """

    name: str
    line: int
    first: int
    last: int
    is_kernel: bool


def find_functions(text: str) -> tuple[Function, ...]:
    """All functions of a source text by line; none where it is not Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(_functions(tree, ""))


def _functions(node: ast.AST, prefix: str) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield _function(child, prefix + child.name)
        inner = prefix
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = f"{prefix}{child.name}."
        yield from _functions(child, inner)


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> Function:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    is_kernel = any(_is_kernel_decorator(decorator) for decorator in node.decorator_list)
    return Function(name, node.lineno, first, node.end_lineno or node.lineno, is_kernel)


def _is_kernel_decorator(node: ast.expr) -> bool:
    target = node.func if isinstance(node, ast.Call) else node
    if not isinstance(target, ast.Attribute) or target.attr not in KERNEL_DECORATORS:
        return False
    root = target.value
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(root, ast.Name) and root.id.startswith(("nki", "neuronxcc"))
