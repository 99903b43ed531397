"""Which modules a program's text gives its optimizers, by their paths in a profile."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

_MOVING = ("to", "bfloat16", "half", "float", "train", "eval", "requires_grad_")
"""Methods of a module that give the module."""


def trained_modules(lines: Sequence[str]) -> frozenset[str]:
    """Paths of modules whose parameters an optimizer of a file updates: "/Model/head" for `model.head`.

    A module that is the value of a name is known in a profile by its class.

    Returns:
        Nothing where the text has no optimizer, gives one its parameters in another way than
        `MODULE.parameters()`, uses parameters of other modules, or asks for gradients of tensors.
    """
    try:
        nodes = list(ast.walk(ast.parse("\n".join(lines))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    classes, optimizers = dict(classes_of(nodes)), _optimizers(nodes)
    given = [each.args[0] for each in calls if each.args and _is_optimizer(each, optimizers)]
    paths = {_path(owner, classes) for owner in chain.from_iterable(map(_owners, given))}
    asked = (_dotted(each.func).rpartition(".")[0] for each in calls if _is_parameters(each.func))
    used = {_path(owner, classes) for owner in asked}
    if not given or "" in paths or not used <= paths or any(map(_wants_gradient, calls)):
        return frozenset()
    return frozenset(paths)


def classes_of(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """Names that are assigned what a call makes, and the last part of what is called."""
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            made = node.value
            while (
                isinstance(made, ast.Call)
                and isinstance(made.func, ast.Attribute)
                and made.func.attr in _MOVING
            ):
                made = made.func.value
            if isinstance(made, ast.Call):
                yield node.targets[0].id, _dotted(made.func).rpartition(".")[2]


def _optimizers(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """Names that are imported from torch.optim."""
    imports = (node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "torch.optim")
    return frozenset(name.asname or name.name for node in imports for name in node.names)


def _is_optimizer(call: ast.Call, imported: frozenset[str]) -> bool:
    name = _dotted(call.func)
    return name in imported or "optim" in name.split(".")[:-1]


def _owners(values: ast.expr) -> Iterator[str]:
    """What `parameters()` is called of; "" for anything else."""
    if isinstance(values, (ast.List, ast.Tuple)):
        for each in values.elts:
            yield from _owners(each.value if isinstance(each, ast.Starred) else each)
    elif isinstance(values, ast.BinOp) and isinstance(values.op, ast.Add):
        yield from chain(_owners(values.left), _owners(values.right))
    elif isinstance(values, ast.Dict):
        for key, each in zip(values.keys, values.values):
            if isinstance(key, ast.Constant) and key.value == "params":
                yield from _owners(each)
    elif isinstance(values, ast.Call) and _dotted(values.func) == "list" and len(values.args) == 1:
        yield from _owners(values.args[0])
    elif isinstance(values, ast.Call) and isinstance(values.func, ast.Attribute):
        yield _dotted(values.func.value) if _is_parameters(values.func) else ""
    else:
        yield ""


def _is_parameters(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and function.attr in ("parameters", "named_parameters")


def _wants_gradient(call: ast.Call) -> bool:
    """Whether a call may ask for the gradient of a tensor, for which the backward pass must go on."""
    name = _dotted(call.func).rpartition(".")[2]
    if name in ("grad", "requires_grad_"):
        return not (call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value is False)
    wanted = (each.value for each in call.keywords if each.arg == "requires_grad")
    return any(not isinstance(each, ast.Constant) or each.value is True for each in wanted)


def _path(owner: str, classes: Mapping[str, str]) -> str:
    name, _, rest = owner.partition(".")
    return "/" + "/".join([classes[name], *filter(None, rest.split("."))]) if name in classes else ""


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""
