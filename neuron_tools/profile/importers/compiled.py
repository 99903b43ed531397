"""Compiles the functions that look at every byte of a trace. The result is kept on disk: it is made once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from neuron_tools.errors import NeuronToolsError

try:
    import numba
except ModuleNotFoundError as error:
    raise NeuronToolsError(
        f"Importing traces needs the package '{error.name}': install it with "
        "'python -m pip install \"neuron-tools[profile]\"'."
    ) from error

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """A function of arrays and numbers as machine code, which runs while other threads run Python."""
    return cast(Function, numba.njit(cache=True, nogil=True, boundscheck=False)(function))
