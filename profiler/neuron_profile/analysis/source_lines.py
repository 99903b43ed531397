"""What the text of a Python file says of its lines: how often one is come to, and how alike its calls are."""

from __future__ import annotations

import ast
import dis
import warnings
from collections import Counter
from collections.abc import Iterator
from types import CodeType

_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
_Calling = ast.Call | ast.BinOp | ast.UnaryOp | ast.AugAssign | ast.Compare
_COMPOUND = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.FunctionDef,
             ast.AsyncFunctionDef, ast.ClassDef, ast.Match)  # fmt: skip
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def line_entries(text: str, line: int) -> int:
    """How often one execution of a statement comes to one of its lines: so often a breakpoint there is hit.

    A call over several lines comes to the first of them twice, before its arguments and after them; `with`
    when its block begins and when it ends.

    Args:
        text: The file.
        line: Counted from 1.

    Returns:
        1 also where the text cannot be parsed or has no statement at the line.
    """
    try:
        statement = _statement_at(ast.parse(text), line)
    except _UNREADABLE:
        return 1
    if isinstance(statement, (ast.With, ast.AsyncWith)) and statement.lineno == line:
        return 2
    if statement is None or isinstance(statement, _COMPOUND) or statement.lineno == statement.end_lineno:
        return 1
    return max(1, _entries(text, line))


def most_alike_calls(text: str, line: int) -> int:
    """How often a line calls the same function or uses the same operator, at most: twice in `a * b + c * d`.

    Returns:
        At least 1, also where the text cannot be parsed.
    """
    try:
        tree = ast.parse(text)
    except _UNREADABLE:
        return 1
    calls = (node for node in ast.walk(tree) if isinstance(node, _Calling) and node.lineno <= line)
    counted = Counter(_called(node) for node in calls if line <= (node.end_lineno or node.lineno))
    return max(counted.values(), default=1)


def looped_lines(text: str) -> frozenset[int]:
    """Lines of loops and comprehensions, counted from 1; none where the text cannot be parsed."""
    try:
        tree = ast.parse(text)
    except _UNREADABLE:
        return frozenset()
    loops = (node for node in ast.walk(tree) if isinstance(node, _LOOPS))
    return frozenset(
        line for loop in loops for line in range(loop.lineno, (loop.end_lineno or loop.lineno) + 1)
    )


def _statement_at(tree: ast.AST, line: int) -> ast.stmt | None:
    """The innermost statement that a line is part of."""
    found: ast.stmt | None = None
    for node in ast.walk(tree):  # from the outside inwards
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            found = node
    return found


def _entries(text: str, line: int) -> int:
    """How often a line begins in the code of the function that it is in."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = compile(text, "<captured>", "exec", dont_inherit=True)
    except _UNREADABLE:
        return 1
    return max(
        ([number for _, number in dis.findlinestarts(code)].count(line) for code in _codes(module)), default=1
    )


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _called(node: _Calling) -> str:
    if isinstance(node, ast.Call):
        return node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
    return type(node.ops[0] if isinstance(node, ast.Compare) else node.op).__name__


def called_name(call: ast.Call) -> str:
    """Name of the function or method that is called; "" of what has none."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
