"""The stacks of a graph's operations, continued where the graph was called.

A graph is compiled once and called from many places: its operations know their stacks up to the function that
was compiled. The lines above, the user's own among them, are those of the call.
"""

from __future__ import annotations

import numpy as np

from neuron_tools.capture.columns import Codes, TextPool
from neuron_tools.capture.stacks import StackRegistry

COLUMN = "stack_frame_ids"
MOST_KEPT = 256


class CallingStacks:
    """Continues columns of stacks; those of one graph and one place of call are worked out once."""

    def __init__(self, stacks: StackRegistry) -> None:
        self._stacks = stacks
        self._kept: dict[tuple[int, str], tuple[Codes, Codes]] = {}

    def continued(self, codes: Codes, calling: str | None, pool: TextPool) -> Codes:
        """A template's column of stacks, as codes of a pool, for an execution that `calling` asked for."""
        if not calling:
            return codes
        key = (id(codes), calling)
        kept = self._kept.get(key)
        if kept is None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            # The column is kept beside: its id stands for it while it lives.
            kept = self._kept[key] = codes, self._computed(codes, calling, pool)
        return kept[1]

    def _computed(self, codes: Codes, calling: str, pool: TextPool) -> Codes:
        distinct, places = np.unique(codes, return_inverse=True)
        leaves = [pool.text(int(code)) for code in distinct]
        joined = pool.codes(self._stacks.continued(leaf, calling) if leaf else leaf for leaf in leaves)
        return joined[places.ravel()]
