"""Compiles functions that look at every byte or span. The result is kept on disk: it is made once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from neuron_tools.errors import NeuronToolsError

try:
    import numba
except ModuleNotFoundError as error:
    raise NeuronToolsError(
        f"Reading and writing traces needs the package '{error.name}': install it with "
        "'python -m pip install \"neuron-tools[profile]\"'."
    ) from error

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """A function of arrays and numbers as machine code, which runs while other threads run Python."""
    return _compiled(function)


def compiled_as(signature: Any) -> Callable[[Function], Function]:
    """The same for arguments of these types alone: compiled when it is defined, and not once more for each
    constant or read-only array that it is called with."""

    def compile_function(function: Function) -> Function:
        return _compiled(function, signature, error_model="numpy")

    return compile_function


def _compiled(function: Function, *signature: Any, **options: Any) -> Function:
    options |= {"nogil": True, "boundscheck": False}
    try:
        return cast(Function, numba.njit(*signature, cache=True, **options)(function))
    except RuntimeError:  # no folder can be written to keep the result in: each process compiles anew
        return cast(Function, numba.njit(*signature, **options)(function))
