"""Threads of NumPy's products while kernels compute: one, since a tile is too small to be shared out.

Two threads take half a tile each and wait for one another: where other programs keep both processors busy,
128 x 128 by 128 x 512 elements took twenty times as long as with one thread, and as much more processor time.
"""

from __future__ import annotations

from functools import lru_cache

import numpy  # noqa: F401  # loads the library that is looked for
from threadpoolctl import ThreadpoolController

from neuron_tools.shared_block import SharedBlock


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    """The libraries for products; looking for them takes longer than setting their threads."""
    return ThreadpoolController().select(user_api="blas")


one_thread = SharedBlock(lambda: _libraries().limit(limits=1))
"""A block in which NumPy's products are computed with one thread."""
