"""What the text of a loop says about a line in it: that it always computes the same, or that nobody reads it.

Only plain cases are told: where a name might be changed in a way that the text does not show, nothing is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set

from neuron_profile.analysis.named_modules import NamedModules, named_modules
from neuron_tools.frozen import frozen

Loop = ast.For | ast.While
Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
_LOOPS = (ast.For, ast.While)
_SCOPES = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)
_TRAINING = ("step", "backward", "load_state_dict")
"""Methods that change tensors which their call does not name."""
_CHANGING = frozenset(
    {
        "rand",
        "randn",
        "randint",
        "randperm",
        "rand_like",
        "randn_like",
        "randint_like",
        "normal",
        "bernoulli",
        "multinomial",
        "dropout",
        "alpha_dropout",
        "pop",
        "popleft",
        "popitem",
        "get",
        "recv",
        "read",
        "readline",
        "next",
        "item",
        "tolist",
        "numpy",
        "empty",
        "empty_like",
        "time",
        "perf_counter",
        "sample",
        "choice",
        "choices",
        "shuffle",
        "register_hook",
    }
)
"""Functions that give something else each time, change something, or hand a value to the host."""


@frozen
class LoopLine:
    """An assignment `NAME = VALUE` directly in the body of a loop.

    Attributes:
        line: Its first line.
        name: What it assigns.
        methods: Names of the functions that VALUE calls.
        invariant: Whether every iteration computes the same.
        loop_line: First line of the outermost loop for which that is so; of the innermost, if it is not.
        loop_end: Its last line.
        unused: Whether nothing in its scope reads NAME.
        in_function: Whether it stands outside of loops, in a function that is called again and again; the
            lines of the loop are those of the function.
        moved: Of a statement that moves tensors inside an expression, how many.
    """

    line: int
    name: str
    methods: frozenset[str]
    invariant: bool
    loop_line: int
    loop_end: int
    unused: bool
    in_function: bool = False
    moved: int = 1


def loop_lines(lines: Sequence[str]) -> dict[int, LoopLine]:
    """The assignments in the loops of a file, by line; none of a text that is no Python."""
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    modules = named_modules(tree)
    places = (place for scope in _scopes(tree) for place in _assignments(scope, scope.body, ()))
    found = (_line(*place, modules) for place in places)
    return {line.line: line for line in found if line is not None}


def copying_lines(lines: Sequence[str]) -> dict[int, LoopLine]:
    """The statements in the loops of a file that move tensors inside an expression, by line.

    Only where none of these tensors changes in the innermost loop. A whole assignment of a moved tensor is
    one of `loop_lines`, but in training: what comes from the host is not trained on the device.
    """
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[int, LoopLine] = {}
    for loop in ast.walk(tree):
        if isinstance(loop, _LOOPS):
            inside = (_copying_line(node, loop) for node in _statements(loop.body))
            found |= {line.line: line for line in inside if line is not None}
    return found


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run once in each iteration."""
    for node in body:
        if isinstance(node, ast.With):
            yield from _statements(node.body)
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr)):
            yield node


def _copying_line(node: ast.stmt, loop: Loop) -> LoopLine | None:
    moved = [source for each in ast.walk(node) if (source := _moved(each)) is not None]
    is_all = _moved(getattr(node, "value", node)) is not None
    if not moved or (is_all and not any(is_training(each) for each in ast.walk(loop))):
        return None
    reads = {each.id for source in moved for each in ast.walk(source) if isinstance(each, ast.Name)}
    if not reads.isdisjoint(changed_names(loop)):
        return None
    moved.sort(key=lambda each: (each.lineno, each.col_offset))
    names, last = ", ".join(map(ast.unparse, moved)), loop.end_lineno or loop.lineno
    return LoopLine(
        node.lineno, names, frozenset({"to"}), True, loop.lineno, last, unused=False, moved=len(moved)
    )


def _moved(node: ast.AST) -> ast.expr | None:
    """Of `TENSOR.to(...)`, a tensor that a name or an attribute holds."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    source = node.func.value
    return source if node.func.attr == "to" and isinstance(source, (ast.Name, ast.Attribute)) else None


def _scopes(tree: ast.Module) -> Iterator[Scope]:
    return (node for node in ast.walk(tree) if isinstance(node, _SCOPES))


def _assignments(
    scope: Scope, body: Sequence[ast.stmt], loops: tuple[Loop, ...]
) -> Iterator[tuple[Scope, tuple[Loop, ...], ast.Assign]]:
    """Assignments whose parents are loops and `with` statements only, with their loops from the outside."""
    for node in body:
        if isinstance(node, ast.Assign) and loops:
            yield scope, loops, node
        elif isinstance(node, _LOOPS):
            yield from _assignments(scope, node.body, (*loops, node))
        elif isinstance(node, ast.With):
            yield from _assignments(scope, node.body, loops)


def _line(scope: Scope, loops: tuple[Loop, ...], node: ast.Assign, modules: NamedModules) -> LoopLine | None:
    if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
        return None
    if not is_pure(node.value, modules.names):
        return None
    name = node.targets[0].id
    outermost = next((loop for loop in loops if _is_invariant(node, name, loop, modules)), None)
    loop, unused = outermost or loops[-1], not reads_of(scope, name)
    last = loop.end_lineno or loop.lineno
    return LoopLine(
        node.lineno, name, methods_of(node.value), outermost is not None, loop.lineno, last, unused
    )


def is_pure(value: ast.expr, modules: Set[str] = frozenset()) -> bool:
    """Whether an expression only calls methods of tensors, functions of torch that compute, and modules."""
    calls = [node for node in ast.walk(value) if isinstance(node, ast.Call)]
    other = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda, ast.ListComp, ast.GeneratorExp)
    if any(isinstance(node, other) for node in ast.walk(value)):
        return False
    return all(_computes(call, modules) for call in calls) and (bool(calls) or isinstance(value, ast.BinOp))


def _computes(call: ast.Call, modules: Set[str]) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        return function.id in modules
    if not isinstance(function, ast.Attribute) or function.attr in _CHANGING or function.attr.endswith("_"):
        return False
    return not any(keyword.arg in ("out", "generator") for keyword in call.keywords)


def methods_of(value: ast.expr) -> frozenset[str]:
    """Names of the functions that an expression calls; "@" where it has operators."""
    calls = (node.func for node in ast.walk(value) if isinstance(node, ast.Call))
    names = {function.attr for function in calls if isinstance(function, ast.Attribute)}
    return frozenset(names | {"@" for node in ast.walk(value) if isinstance(node, ast.BinOp)})


def _is_invariant(node: ast.Assign, name: str, loop: Loop, modules: NamedModules) -> bool:
    """Whether nothing that an assignment reads, nor what it assigns, changes within a loop.

    Where something is trained, that is only sure of a frozen module's results.
    """
    changed = list(changed_names(loop))
    reads = {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
    if changed.count(name) != 1:
        return False
    if any(is_training(each) for each in ast.walk(loop)):
        if not modules.is_frozen(node.value, reads):
            return False
    elif not reads.isdisjoint(modules.names) and not _goes_on(loop):
        return False  # a loop that only repeats what a module does, to measure it
    return reads.isdisjoint(changed) and not _is_read_before(node, name, loop)


def _goes_on(loop: Loop) -> bool:
    """Whether an iteration depends on the one before, or on what a loop other than a count iterates over."""
    if isinstance(loop, ast.For) and not ast.unparse(loop.iter).startswith("range("):
        return True
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign):
            return True
        if isinstance(node, ast.Assign):
            read = {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
            names = {each.id for each in node.targets if isinstance(each, ast.Name)}
            if read & names or any(_is_read_before(node, name, loop) for name in names):
                return True
    return False


def _is_read_before(node: ast.Assign, name: str, loop: Loop) -> bool:
    """Whether an iteration may read what the one before assigned."""
    return any(
        isinstance(each, ast.Name) and each.id == name and each.lineno < node.lineno
        for each in ast.walk(loop)
    )


def is_training(node: ast.AST) -> bool:
    """Whether a node is a call that changes tensors which it does not name."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _TRAINING


def changed_names(body: ast.AST) -> Iterator[str]:
    """Names that are assigned, or whose value is changed, in a node; as often as that is written."""
    for node in ast.walk(body):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            yield _root(node)
        elif isinstance(node, ast.Call):
            yield from _changed_by(node)


def _changed_by(call: ast.Call) -> Iterator[str]:
    """Of `x.add_(...)`, x; of `f(..., out=x)`, x; of `f(x)` where nobody knows f, x."""
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr.endswith("_"):
        yield _root(function.value)
    for keyword in call.keywords:
        if keyword.arg == "out":
            yield _root(keyword.value)


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def reads_of(scope: Scope, name: str) -> int:
    """How often a name is read in a scope, functions inside included."""
    return sum(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        for node in ast.walk(scope)
    )
