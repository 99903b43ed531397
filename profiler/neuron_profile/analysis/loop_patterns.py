"""What the text of a program says is done piece by piece: parameters updated one by one, rows computed one
by one, tensors that grow by concatenation.

Only plain spellings are told, and a pattern counts only where calls of the profile bear it out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from neuron_profile.analysis.source_lines import called_name
from neuron_tools.frozen import frozen

_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp)
_JOINING = frozenset({"cat", "concat", "concatenate", "stack", "vstack", "hstack"})
_PARAMETERS = ("param", "weights")
"""What the text of an iterable over parameters holds."""


@frozen
class LoopPatterns:
    """Lines of a file, counted from 1.

    Attributes:
        updates: Of each line in the body of a loop over parameters that changes them, the loop's line.
        rows: Of each line that computes one row of a batch, the line at which the rows are joined.
        growing: Lines that put together what a name held and something new, under that name.
    """

    updates: dict[int, int] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)
    growing: frozenset[int] = frozenset()


def loop_patterns(lines: Sequence[str]) -> LoopPatterns:
    """The patterns of a file's text; none where it is no Python."""
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return LoopPatterns()
    nodes = list(ast.walk(tree))
    return LoopPatterns(
        updates=dict(_updates(nodes)),
        rows=dict(_rows(nodes)),
        growing=frozenset(node.lineno for node in nodes if isinstance(node, ast.Assign) and _grows(node)),
    )


def _updates(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, int]]:
    values = {
        target.id: ast.unparse(node.value)
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in nodes:
        if isinstance(node, ast.For) and _is_over_parameters(node.iter, values):
            changing = [each for body in node.body for each in ast.walk(body) if _changes(each)]
            if changing:
                last = node.end_lineno or node.lineno
                yield from ((line, node.lineno) for line in range(node.body[0].lineno, last + 1))


def _is_over_parameters(iterable: ast.expr, values: Mapping[str, str]) -> bool:
    """Whether an iterable holds parameters by its text, or by that of what its names were assigned."""
    texts = [ast.unparse(iterable), *(values.get(name, "") for name in _names(iterable))]
    return any(part in text for text in texts for part in _PARAMETERS)


def _changes(node: ast.AST) -> bool:
    """Whether a statement changes a tensor in place."""
    if isinstance(node, ast.AugAssign):
        return True
    name = called_name(node) if isinstance(node, ast.Call) else ""
    return name.endswith("_") and not name.startswith("_") and name != "requires_grad_"


def _rows(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, int]]:
    """Comprehensions whose values are joined, loops that append to a list which is joined behind them, and
    loops that write into the rows of a tensor."""
    joins = [
        node for node in nodes if isinstance(node, ast.Call) and called_name(node) in _JOINING and node.args
    ]
    joined = {node.args[0].id: node.lineno for node in joins if isinstance(node.args[0], ast.Name)}
    for join in joins:
        values = join.args[0]
        if isinstance(values, _COMPREHENSIONS) and _computes(values.elt):
            yield values.elt.lineno, join.lineno
    for node in nodes:
        if (
            isinstance(node, ast.Call)
            and called_name(node) == "append"
            and node.args
            and _computes(node.args[0])
        ):
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            if isinstance(owner, ast.Name) and joined.get(owner.id, 0) > node.lineno:
                yield node.lineno, joined[owner.id]
        elif isinstance(node, ast.For):
            yield from ((line, line) for line in _written_rows(node))


def _written_rows(loop: ast.For) -> Iterator[int]:
    """Lines `RESULT[I] = VALUE` and `RESULT[I : ...] = VALUE` of a loop over I whose value is of row I."""
    variables = _names(loop.target)
    written = [each for each in loop.body if isinstance(each, ast.Assign) and len(each.targets) == 1]
    for node in written:
        target = node.targets[0]
        if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
            continue
        read = _names(node.value)
        needs_others = target.value.id in read  # a row may need the one before
        if (
            variables & _names(target.slice)
            and variables & read
            and _computes(node.value)
            and not needs_others
        ):
            yield node.lineno


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _computes(value: ast.expr) -> bool:
    return any(isinstance(node, (ast.Call, ast.BinOp)) for node in ast.walk(value))


def _grows(node: ast.Assign) -> bool:
    """Whether this is `NAME = cat([NAME, ...])`."""
    value = node.value
    if len(node.targets) != 1 or not isinstance(value, ast.Call) or called_name(value) not in _JOINING:
        return False
    parts = value.args[0] if value.args else None
    if not isinstance(parts, (ast.List, ast.Tuple)):
        return False
    target = ast.unparse(node.targets[0])
    return any(ast.unparse(part) == target for part in parts.elts)
