"""What may be varied in a kernel: values by parameter, from the kernel's own annotations and a TOML file."""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from neuron_profile.tune.load import constant_value
from neuron_profile.tune.measurement import Candidate, Parameters
from neuron_tools.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_ENTRIES = ("inputs", "expected", "tolerance", "parameters")
Values = tuple[Any, ...]


@dataclass(frozen=True)
class Space:
    """The candidates of a search.

    Attributes:
        parameters: Values to try of each parameter, in order of the file.
        inputs: Name of the function that makes the kernel's arguments.
        expected: Name of the function that computes the right values from them; "" = those of the kernel as
            it stands.
        tolerance: Largest difference from these, relative to the largest.
    """

    parameters: Mapping[str, Values] = field(default_factory=dict)
    inputs: str = "inputs"
    expected: str = ""
    tolerance: float = 1e-2

    @property
    def size(self) -> int:
        """How many candidates there are."""
        return math.prod(len(values) for values in self.parameters.values())

    def candidates(self) -> Iterator[Parameters]:
        """All of them."""
        for values in product(*self.parameters.values()):
            yield dict(zip(self.parameters, values))


def read_space(path: Path | None, kernel: Candidate) -> Space:
    """The space of a kernel: its parameters annotated with `Literal`, and what a TOML file adds or replaces.

    Raises:
        UsageError: The file cannot be read, or names what the kernel does not have, or nothing may vary.
    """
    tree = _parsed(kernel.path)
    function = find_function(tree, kernel)
    content = _content(path) if path else {}
    for name in content:
        if name not in _ENTRIES:
            raise UsageError(f"{path} has an unknown entry {name!r}: known are {', '.join(_ENTRIES)}.")
    written = {
        name: _values(str(path), name, values) for name, values in content.get("parameters", {}).items()
    }
    parameters = {**_literals(function), **written}
    if not parameters:
        raise UsageError(
            f"Nothing of {kernel.function} may vary: name a file with --space, or annotate keyword "
            "parameters with Literal[...]."
        )
    for name in parameters:
        if value_of(tree, function, name) is None:
            raise UsageError(
                f"{kernel.path.name} has neither a parameter {name} of {kernel.function} with a default, nor "
                "a constant of that name at its top level."
            )
    inputs = str(content.get("inputs", "inputs"))
    expected = str(content.get("expected", ""))
    return Space(parameters, inputs, expected, _tolerance(path, content.get("tolerance", 1e-2)))


def find_function(tree: ast.Module, kernel: Candidate) -> ast.FunctionDef:
    """The kernel's definition.

    Raises:
        UsageError: The file has none of that name.
    """
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == kernel.function:
            return statement
    raise UsageError(f"{kernel.path} defines no function {kernel.function}: name it as FILE.py:FUNCTION.")


def value_of(tree: ast.Module, function: ast.FunctionDef, name: str) -> ast.expr | None:
    """What a parameter is as the file stands: the default of the function's parameter, or a constant."""
    defaults = dict(_defaults(function))
    return defaults.get(name) if name in defaults else constant_value(tree, name)


def _defaults(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    for argument, value in zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults):
        yield argument.arg, value
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        if default is not None:
            yield argument.arg, default


def _literals(function: ast.FunctionDef) -> dict[str, Values]:
    """Values of the parameters that are annotated as `Literal[...]`."""
    found = {}
    for argument in (*function.args.args, *function.args.kwonlyargs):
        note = argument.annotation
        if isinstance(note, ast.Subscript) and ast.unparse(note.value).split(".")[-1] == "Literal":
            written = ast.literal_eval(note.slice)
            found[argument.arg] = written if isinstance(written, tuple) else (written,)
    return found


def _parsed(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_text(), str(path))
    except (SyntaxError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{path} cannot be read as Python: {error}.") from error


def _content(path: Path) -> Mapping[str, Any]:
    try:
        content: Mapping[str, Any] = tomllib.loads(path.read_text())
        return content
    except OSError as error:
        raise UsageError(f"The space {path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"The space {path} is no valid TOML: {error}.") from error


def _tolerance(path: Path | None, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise UsageError(f"{path} has a wrong entry: tolerance must be a number of 0 or more.")
    return float(value)


def _values(path: str, name: str, values: Any) -> Values:
    plain = (bool, int, float, str)
    if not isinstance(values, list) or not values or not all(isinstance(each, plain) for each in values):
        raise UsageError(f"{path} has a wrong entry: {name} must be a list of numbers, texts or booleans.")
    return tuple({(type(each), each): each for each in values}.values())
