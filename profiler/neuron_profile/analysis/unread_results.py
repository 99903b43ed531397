"""Results that a function computes and nobody reads: not the function itself, nor any of its callers."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from neuron_profile.analysis.loop_sources import LoopLine, is_pure, methods_of, reads_of
from neuron_profile.analysis.trained_modules import classes_of

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = ast.Module | Function
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def unread_lines(tree: ast.Module) -> Iterator[LoopLine]:
    """Assignments directly in the body of a function, of one name each, whose value nobody reads."""
    dropped = dict(_dropped(tree))
    for function in (node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)):
        returned = _only_returned(function, dropped.get(function, frozenset()))
        for node in function.body:
            name = _target(node)
            if isinstance(node, ast.Assign) and name and is_pure(node.value):
                reads = reads_of(function, name)
                if not reads or (name in returned and reads == returned[name]):
                    last = function.end_lineno or function.lineno
                    yield LoopLine(
                        node.lineno, name, methods_of(node.value), False, function.lineno, last, True, True
                    )


def _target(node: ast.stmt) -> str:
    """NAME of `NAME = ...`."""
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    return target.id if isinstance(target, ast.Name) else ""


def _only_returned(function: Function, places: frozenset[int]) -> Mapping[str, int]:
    """Names that stand at dropped places of what a function returns, with how often they do."""
    found: defaultdict[str, int] = defaultdict(int)
    for values in _returned(function):
        for place in places:
            value = values[place]
            if isinstance(value, ast.Name):
                found[value.id] += 1
    return found


def _returned(function: Function) -> list[Sequence[ast.expr]]:
    """The values of each `return` of a function where all return tuples of one length; else nothing."""
    values = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    tuples = [value.elts for value in values if isinstance(value, ast.Tuple)]
    is_regular = len(tuples) == len(values) and len({len(each) for each in tuples}) == 1
    return list(tuples) if is_regular else []


def _dropped(tree: ast.Module) -> Iterator[tuple[Function, frozenset[int]]]:
    """Functions that return tuples, with the places of these that no call in the file reads."""
    functions = dict(_named(tree))
    classes = dict(classes_of(ast.walk(tree))) | dict(_attributes(tree))
    unread: dict[Function, list[frozenset[int]]] = defaultdict(list)
    told = set()
    for scope in (node for node in ast.walk(tree) if isinstance(node, (ast.Module, *_FUNCTIONS))):
        for node in _own_nodes(scope):
            called = _called(node.value, functions, classes) if isinstance(node, ast.Assign) else None
            if isinstance(node, ast.Assign) and called is not None and isinstance(node.targets[0], ast.Tuple):
                told.add(id(node.value))
                unread[called].append(_unread_places(scope, node.targets[0]))
    for node in ast.walk(tree):
        called = _called(node, functions, classes) if isinstance(node, ast.Call) else None
        if called is not None and id(node) not in told:
            unread[called].append(frozenset())
    for function, places in unread.items():
        if _returned(function):
            yield function, frozenset.intersection(*places) & set(range(len(_returned(function)[0])))


def _own_nodes(scope: Scope) -> Iterator[ast.AST]:
    """The nodes of a scope without those of functions inside."""
    waiting: list[ast.AST] = list(scope.body)
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [each for each in ast.iter_child_nodes(node) if not isinstance(each, _FUNCTIONS)]


def _unread_places(scope: Scope, targets: ast.Tuple) -> frozenset[int]:
    names = [each.id if isinstance(each, ast.Name) else "" for each in targets.elts]
    return frozenset(place for place, name in enumerate(names) if name and not reads_of(scope, name))


def _named(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Functions of the top level by name, and what a class computes when its objects are called."""
    for node in tree.body:
        if isinstance(node, _FUNCTIONS):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            inside = (each for each in node.body if isinstance(each, _FUNCTIONS))
            yield from ((node.name, each) for each in inside if each.name in ("forward", "__call__"))


def _attributes(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Of `self.NAME = CLASS(...)`, "self.NAME" and the class."""
    assigned = (node for node in ast.walk(tree) if isinstance(node, ast.Assign))
    for node in assigned:
        made = node.value.func if isinstance(node.value, ast.Call) else None
        if isinstance(node.targets[0], ast.Attribute) and isinstance(made, ast.Name):
            yield ast.unparse(node.targets[0]), made.id


def _called(node: ast.expr, functions: Mapping[str, Function], classes: Mapping[str, str]) -> Function | None:
    """The function of the file that a call runs, if it is plain which one."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
        return None
    name = ast.unparse(node.func)
    if name in classes:
        return functions.get(classes[name])
    found = functions.get(name)
    return found if found is not None and found.name == name else None
