"""Products in the text of a file whose operands are all cast to fp32 where they are multiplied."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

UPCASTS = frozenset({"float", "double"})
"""Methods without arguments that make a tensor wider."""
WIDE = frozenset({"float", "float32", "double", "float64"})
"""Data types of torch that do so as the only argument of `to`."""
VIEWS = frozenset({"t", "transpose", "permute", "view", "reshape", "unsqueeze", "squeeze", "T", "mT"})
"""Methods and properties that only say in which order a tensor is read."""
PRODUCTS = frozenset({"matmul", "mm", "bmm", "linear"})
"""Functions that multiply their first two arguments."""


def upcast_lines(lines: Sequence[str]) -> frozenset[int]:
    """Lines of the statements that hold such a product; none of a text that is no Python."""
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    return frozenset(
        line
        for node in ast.walk(tree)
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr))
        and any(all(map(_is_upcast, operands)) for operands in _products(node))
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    )


def _products(statement: ast.stmt) -> Iterator[Sequence[ast.expr]]:
    """The operands of each product in a statement."""
    for node in ast.walk(statement):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield node.left, node.right
        elif isinstance(node, ast.Call) and _name(node.func) in PRODUCTS and len(node.args) == 2:
            yield node.args


def _is_upcast(operand: ast.expr) -> bool:
    operand = _beneath_views(operand)
    if not isinstance(operand, ast.Call) or operand.keywords or not isinstance(operand.func, ast.Attribute):
        return False
    if not operand.args:
        return operand.func.attr in UPCASTS
    return operand.func.attr == "to" and len(operand.args) == 1 and _name(operand.args[0]) in WIDE


def _beneath_views(node: ast.expr) -> ast.expr:
    """Of `x.float().t()`, `x.float()`."""
    method = node.func if isinstance(node, ast.Call) else node
    if isinstance(method, ast.Attribute) and method.attr in VIEWS:
        return _beneath_views(method.value)
    return node


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
