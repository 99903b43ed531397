"""Python that the NKI compiler's own front end does not take, noticed before a kernel runs.

Up to NKI 0.6 (SDK 2.32) the compiler reads a kernel's source and takes a subset of Python: what the NKI
language guide describes (values, containers, control flow, classes) and what the migration guide leaves of
it. From 0.7 on it traces the kernel with Python, generators and inheritance included; with
`NKI_COMPILER_FRONTEND=custom` it still reads (aws-neuron-sdk, announcement of 2026-10-16). So of a kernel
outside the subset the user is told, and it is refused where the reading front end is asked for.
"""

from __future__ import annotations

import ast
import linecache
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from enum import Enum
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from neuron_tools.frozen import frozen
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.language.structure import NKIObject

STRICT = "NKI_STRICT"
"""Environment variable: "0" says nothing, "1" refuses; otherwise `FRONT_END` decides."""
FRONT_END = "NKI_COMPILER_FRONTEND"
"""AWS's own variable: "custom" chooses the front end that reads the source."""

_FOREIGN = ("neuron_tools", "nki", "neuronxcc", "builtins", "typing", "dataclasses", "enum")
_READ: WeakKeyDictionary[CodeType, tuple[Excess, ...]] = WeakKeyDictionary()
"""What was found in the kernels that were read."""
_ORDERING = "no_reorder"
"""The language's one context manager."""

_CONSTRUCTS: dict[str, tuple[str, str]] = {
    "Yield": ("a generator", "return a list"),
    "YieldFrom": ("a generator", "return a list"),
    "GeneratorExp": ("a generator expression", "fill a list in a for loop"),
    "ListComp": ("a list comprehension", "fill a list in a for loop"),
    "SetComp": ("a set", "use a list"),
    "DictComp": ("a dictionary comprehension", "fill a dictionary in a for loop"),
    "Set": ("a set", "use a list or a tuple"),
    "Lambda": ("a lambda", "define a function"),
    "Try": ("try", "check with if or assert before"),
    "TryStar": ("try", "check with if or assert before"),
    "NamedExpr": ("an assignment within an expression", "make it a statement of its own"),
    "Global": ("a global variable that is assigned", "pass the value in and return it"),
    "Nonlocal": ("an enclosing function's variable that is assigned", "pass the value in and return it"),
    "AsyncFunctionDef": ("an async function", "write a plain one"),
    "Await": ("await", "call a plain function"),
    "Match": ("match", "use if and elif"),
    "Import": ("an import", "import at the top of the module"),
    "ImportFrom": ("an import", "import at the top of the module"),
    "ClassDef": ("a class within a function", "define it at the top of the module"),
}
"""Kinds of syntax that neither guide has and no kernel that AWS publishes in this dialect contains."""


class SubsetWarning(UserWarning):
    """A kernel uses Python that only NKI 0.7 and later take."""


@frozen
class Excess:
    """Something outside the subset.

    Attributes:
        where: Its line, "file:line in function".
        what: What it is, and what to write in its place.
    """

    where: str
    what: str


def check_subset(function: Callable[..., Any]) -> None:
    """Tell of, or refuse, Python outside the subset in a kernel and in the functions that it can call.

    Args:
        function: The kernel's function; each is read once.

    Raises:
        NkiValidationError: There is some, and `NKI_STRICT=1` or `NKI_COMPILER_FRONTEND=custom` is set.

    Warns:
        SubsetWarning: There is some, and neither is set.
    """
    switch = os.environ.get(STRICT, "")
    if switch == "0" or not isinstance(function, FunctionType):
        return
    if switch == "1" or os.environ.get(FRONT_END) == "custom":
        for excess in _excesses(function):
            raise NkiValidationError(excess.what, excess.where)
    else:
        _warn_once(function)


def _warn_once(function: FunctionType) -> None:
    if function.__code__ not in _READ:
        for excess in _excesses(function):
            warnings.warn(f"{excess.where}: {excess.what}", SubsetWarning, stacklevel=5)


def _excesses(kernel: FunctionType) -> tuple[Excess, ...]:
    """What a kernel and all that it reaches have outside the subset, in order, each once."""
    known = _READ.get(kernel.__code__)
    if known is not None:
        return known
    found: dict[Excess, None] = {}
    for reached in _reachable(kernel):
        found.update(
            dict.fromkeys(_of_class(reached) if isinstance(reached, type) else _of_function(reached))
        )
    made = _READ[kernel.__code__] = tuple(found)
    return made


# What a kernel reaches


def _reachable(kernel: FunctionType) -> list[FunctionType | type]:
    """The kernel, and the functions and classes of kernel code that it can call by name."""
    found: dict[int, FunctionType | type] = {}
    waiting: list[Any] = [kernel]
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, ModuleType):  # the language's would look for names like "func"
            continue
        value = getattr(value, "func", value)
        if id(value) in found or not isinstance(value, (FunctionType, type)) or _is_foreign(value):
            continue
        found[id(value)] = value
        waiting += _methods(value) if isinstance(value, type) else _named(value)
    return list(found.values())


def _is_foreign(value: FunctionType | type) -> bool:
    """Whether a function or class is no kernel code: its module does not import the language."""
    module = str(value.__module__)
    if module.split(".")[0] in _FOREIGN:
        return True
    if isinstance(value, type):
        return not issubclass(value, NKIObject)
    return not any(_is_language(held) for held in value.__globals__.values())


def _is_language(value: Any) -> bool:
    if isinstance(value, ModuleType):
        return hasattr(value, "__nki_names__") or value.__name__.startswith("neuron_tools.nki")
    return value is NKIObject


def _methods(kind: type) -> list[FunctionType]:
    held = (getattr(value, "__func__", value) for value in vars(kind).values())
    return [value for value in held if isinstance(value, FunctionType)]


def _named(function: FunctionType) -> Iterator[Any]:
    """What the names in a function stand for: globals, its closure, attributes of modules of kernel code."""
    names = set(function.__code__.co_names)
    modules = [value for name in names if isinstance(value := function.__globals__.get(name), ModuleType)]
    for name in function.__code__.co_names:
        yield function.__globals__.get(name)
        for module in modules:
            yield vars(module).get(name)
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not bound yet
            continue


# What is outside the subset


def _of_class(kind: type) -> Iterator[Excess]:
    """A class of kernel code that derives from others than `NKIObject` or an enumeration."""
    strange = [base for base in kind.__bases__ if base is not NKIObject]
    if strange and not issubclass(kind, Enum):
        names = ", ".join(base.__name__ for base in strange)
        file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
        line = _definitions(file).get(kind.__name__)
        yield Excess(
            f"{file}:{line.lineno if line is not None else 0} in {kind.__qualname__}",
            _sentence(f"a class derived from {names}", "derive it from nl.NKIObject alone"),
        )


def _of_function(function: FunctionType) -> Iterator[Excess]:
    code = function.__code__
    tree = _definitions(code.co_filename).get((code.co_name, code.co_firstlineno))
    nodes = [] if tree is None else sorted(ast.walk(tree), key=lambda node: getattr(node, "lineno", 0))
    for node in nodes:
        found = _described(node) if node is not tree else _signature(node)
        if found is not None:
            line = getattr(node, "lineno", code.co_firstlineno)
            yield Excess(f"{code.co_filename}:{line} in {code.co_name}", _sentence(*found))


def _sentence(what: str, instead: str) -> str:
    return (
        f"{what} is outside the Python that the NKI compiler reads (up to NKI 0.6, and with "
        f"{FRONT_END}=custom); {instead}, or set {STRICT}=0 where only NKI 0.7 and later are used"
    )


def _signature(tree: ast.AST) -> tuple[str, str] | None:
    if isinstance(tree, ast.AsyncFunctionDef):
        return _CONSTRUCTS["AsyncFunctionDef"]
    if isinstance(tree, ast.FunctionDef) and tree.args.kwonlyargs:
        return "a parameter that is given by keyword only (*)", "put parameters with defaults last"
    return None


def _described(node: ast.AST) -> tuple[str, str] | None:
    """What a piece of syntax is called and what takes its place; None where it is in the subset."""
    if isinstance(node, ast.With):
        entered = [ast.unparse(item.context_expr) for item in node.items]
        strange = [text for text in entered if _ORDERING not in text]
        return (f"with {strange[0]}", "call the function before and after") if strange else None
    if isinstance(node, ast.Dict):
        keys = [key for key in node.keys if isinstance(key, ast.Constant) and not isinstance(key.value, str)]
        return ("a dictionary key that is no string", "use strings, or a list") if keys else None
    return _CONSTRUCTS.get(type(node).__name__)


@lru_cache(maxsize=64)
def _definitions(file: str) -> dict[Any, Any]:
    """Functions of a file by name and first line, decorators included, and its classes by name."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return {}
    found: dict[Any, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found[node.name, first] = node
        elif isinstance(node, ast.ClassDef):
            found[node.name] = node
    return found
