"""Compiles functions that look at every byte, span or instruction. The result is kept on disk."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from neuron_tools.errors import NeuronToolsError

try:
    import numba
    from numba.core import cgutils, types
    from numba.core.caching import FunctionCache
    from numba.extending import intrinsic, is_jitted
except ModuleNotFoundError as error:
    raise NeuronToolsError(
        f"This needs the package '{error.name}', which compiles loops: install it with "
        "'python -m pip install \"neuron-tools[profile]\"'."
    ) from error

Function = TypeVar("Function", bound=Callable[..., Any])
LOCK_NAME = "neuron-tools.lock"


def compiled(function: Function) -> Function:
    """A function of arrays and numbers as machine code, which runs while other threads run Python."""
    return _compiled(function)


def compiled_with(**options: Any) -> Callable[[Function], Function]:
    """The same with options of `numba.njit`."""
    return partial(_compiled, **options)


def compiled_as(signature: Any) -> Callable[[Function], Function]:
    """The same for arguments of these types alone: compiled when it is defined, and not once more for each
    constant or read-only array that it is called with."""

    def compile_function(function: Function) -> Function:
        return _compiled(function, signature, error_model="numpy")

    return compile_function


def _compiled(function: Function, *signature: Any, **options: Any) -> Function:
    dispatcher = numba.njit(nogil=True, boundscheck=False, **options)(function)
    if is_jitted(dispatcher):
        with suppress(
            RuntimeError
        ):  # no folder can be written to keep the result in: each process compiles anew
            dispatcher._cache = KeptCode(function)
        for each in signature:
            dispatcher.compile(each)
        if signature:
            dispatcher.disable_compile()
    return cast(Function, dispatcher)


class KeptCode(FunctionCache):  # type: ignore[misc]
    """What is kept on disk of a function's code.

    numba numbers the files of a function's signatures by an index that it reads and then replaces: two
    processes that keep different signatures at once would take one number, and the one's code would later
    run as the other's. Here only one process writes in a folder at a time.
    """

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code for one signature; a full disk is no reason to fail."""
        with suppress(OSError), _alone(self.cache_path):
            super().save_overload(sig, data)


@contextmanager
def _alone(folder: str) -> Iterator[None]:
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, LOCK_NAME), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


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
