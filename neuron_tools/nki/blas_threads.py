"""Threads of NumPy's products while kernels compute: one, since a tile is too small to be shared out.

Two threads take half a tile each and wait for one another: where other programs keep both processors busy,
128 x 128 by 128 x 512 elements took twenty times as long as with one thread, and as much more processor time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

from numpy.linalg import _umath_linalg  # a module that NumPy's OpenBLAS is loaded with

from neuron_tools.shared_block import SharedBlock

_NAMES = ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_", "openblas_{}_num_threads")
"""OpenBLAS's functions, as NumPy's wheels and distributions name them."""


@contextmanager
def _set_to_one() -> Iterator[None]:
    found = _functions()
    if found is None:
        yield
        return
    get, set_to = found
    before = get()
    set_to(1)
    try:
        yield
    finally:
        set_to(before)


one_thread = SharedBlock(_set_to_one)
"""A block in which NumPy's products are computed with one thread."""


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
