"""Threads of NumPy's products while kernels compute: one, since a tile is too small to be shared out.

Two threads take half a tile each and wait for one another: where other programs keep both processors busy,
128 x 128 by 128 x 512 elements took twenty times as long as with one thread, and as much more processor time.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

from numpy.linalg import _umath_linalg  # a module that NumPy's OpenBLAS is loaded with

_NAMES = ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_", "openblas_{}_num_threads")
"""OpenBLAS's functions, as NumPy's wheels and distributions name them."""
_LOCK = threading.Lock()


class _Depth:
    """How many blocks are open, and the threads that products had before the first."""

    blocks = 0
    threads = 0


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute NumPy's products with one thread within the block; blocks may lie in one another."""
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    with _LOCK:
        _Depth.blocks += 1
        if _Depth.blocks == 1 and (found := _functions()) is not None:
            get, set_to = found
            _Depth.threads = get()
            set_to(1)


def _leave() -> None:
    with _LOCK:
        _Depth.blocks -= 1
        if _Depth.blocks == 0 and (found := _functions()) is not None:
            found[1](_Depth.threads)


@lru_cache(maxsize=1)
def _functions() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """OpenBLAS's own `get` and `set`; None where NumPy has another library for its products."""
    library = ctypes.CDLL(_umath_linalg.__file__)
    for name in _NAMES:
        try:
            return getattr(library, name.format("get")), getattr(library, name.format("set"))
        except AttributeError:
            continue
    return None
