"""Compiled walk from iterations to the turn of the loop that may be split."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Int32s, Ints
from neuron_tools.compiled import compiled


@compiled
def turns_of(iterations: Int32s, split: npt.NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Of each iteration: the turn of a loop to split that it is in, and the loop directly inside that; or -1.

    Args:
        iterations: (iterations, 3): enclosing iteration (an earlier row), loop, value of its variable.
        split: (loops,) whether each may be split.
    """
    count = iterations.shape[0]
    turn, inner = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    for at in range(count):
        enclosing, loop = iterations[at, 0], iterations[at, 1]
        if split[loop]:
            turn[at] = at
        elif enclosing >= 0:
            turn[at] = turn[enclosing]
            inner[at] = loop if turn[enclosing] == enclosing else inner[enclosing]
    return turn, inner
