"""Compiled kernel of the path along recorded dependencies: the walk back from the last instruction."""

from __future__ import annotations

from neuron_tools.arrays import Ints
from neuron_tools.compiled import compiled


@compiled
def walk(start: Ints, end: Ints, before: Ints, row: int, busy_ns: Ints, wait_ns: Ints) -> int:
    """Follow each instruction to the one it came after, back to one that came after nothing.

    Args:
        start, end: Times of the instructions, in ns.
        before: What each came after; -1 = nothing. Always one that starts earlier.
        row: Where to begin.
        busy_ns: Takes each instruction's part of the path; zeros before.
        wait_ns: Takes the time between the end of what it came after and its own start; zeros before.

    Returns:
        The instruction that came after nothing.
    """
    now = end[row]
    while True:
        begun = min(start[row], now)
        busy_ns[row] = now - begun
        now = begun
        ahead = before[row]
        if ahead < 0:
            return row
        reached = min(end[ahead], now)
        wait_ns[row] = now - reached
        now, row = reached, ahead
