"""Compiles functions that look at every byte or span. The result is kept on disk: it is made once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from neuron_tools.errors import NeuronToolsError

try:
    import numba
    from numba.core import cgutils, types
    from numba.extending import intrinsic
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


@intrinsic  # type: ignore[untyped-decorator]
def _copy_memory(_: Any, out: Any, at: Any, data: Any, begin: Any, count: Any) -> tuple[Any, Any]:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, to_place, source, source_place, length = arguments
        kinds = signature.args
        target = context.make_array(kinds[0])(context, builder, to)
        origin = context.make_array(kinds[2])(context, builder, source)
        cgutils.raw_memcpy(
            builder, builder.gep(target.data, [to_place]), builder.gep(origin.data, [source_place]), length, 1
        )
        return context.get_dummy_value()

    return types.void(out, types.intp, data, types.intp, types.intp), generate


@compiled
def copy_bytes(
    out: npt.NDArray[np.uint8], at: int, data: npt.NDArray[np.uint8], begin: int, count: int
) -> None:
    """Copy `count` bytes of one contiguous array into another, which do not overlap; nothing is checked.

    For compiled code: a loop over single bytes takes several times as long.
    """
    _copy_memory(out, at, data, begin, count)
