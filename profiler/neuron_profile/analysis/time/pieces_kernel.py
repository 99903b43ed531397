"""Compiled kernel of charged time on an axis: the parts of every interval laid out behind each other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.compiled import compiled

Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]

_TOUCHING_NS = 1e-3
"""Pieces of one key that are no further apart are one: sums of shares are rounded."""


@compiled
def lay_out(
    moments: Int64Array, interval: Int64Array, key: Int64Array, length_ns: Float64Array,
    start: Float64Array, end: Float64Array, owner: Int64Array,
) -> int:  # fmt: skip
    """Lay parts of intervals out by key; intervals in a row that the same keys share are divided as one.

    Costs O(n k) for n parts and k keys that share an interval.

    Args:
        moments: (moments,) int64 ns, ascending; an interval lies between two of them.
        interval, key, length_ns: (parts,) the interval, ascending; what has a part of it; how much.
        start, end, owner: (parts,) get the pieces in order: float64 ns, float64 ns, key.

    Returns:
        Number of pieces.
    """
    keys, sums = np.empty(len(key), np.int64), np.empty(len(key), np.float64)
    new_keys, new_sums = np.empty_like(keys), np.empty_like(sums)
    held = place = pieces = 0
    begin = last = np.int64(-2)
    while place < len(interval):
        now, found = interval[place], 0
        while place < len(interval) and interval[place] == now:
            found = _add(new_keys, new_sums, found, key[place], length_ns[place])
            place += 1
        if now == last + 1 and found == held and (new_keys[:found] == keys[:found]).all():
            sums[:held] += new_sums[:held]
        else:
            pieces = _append(float(begin), keys, sums, held, start, end, owner, pieces)
            keys, new_keys, sums, new_sums = new_keys, keys, new_sums, sums
            held, begin = found, moments[now]
        last = now
    return _append(float(begin), keys, sums, held, start, end, owner, pieces)


@compiled
def _add(keys: Int64Array, sums: Float64Array, count: int, key: int, length_ns: float) -> int:
    """Add to the sum of a key; keys ascend. The number of keys then."""
    place = np.searchsorted(keys[:count], key)
    if place < count and keys[place] == key:
        sums[place] += length_ns
        return count
    for behind in range(count, place, -1):
        keys[behind], sums[behind] = keys[behind - 1], sums[behind - 1]
    keys[place], sums[place] = key, length_ns
    return count + 1


@compiled
def _append(
    begin: float, keys: Int64Array, sums: Float64Array, count: int,
    start: Float64Array, end: Float64Array, owner: Int64Array, pieces: int,
) -> int:  # fmt: skip
    """Append one piece for each key, from a moment on; the first may go on with the last one's."""
    for place in range(count):
        goes_on = pieces > 0 and owner[pieces - 1] == keys[place] and begin - end[pieces - 1] <= _TOUCHING_NS
        if not goes_on:
            start[pieces], owner[pieces] = begin, keys[place]
            pieces += 1
        begin += sums[place]
        end[pieces - 1] = begin
    return pieces
