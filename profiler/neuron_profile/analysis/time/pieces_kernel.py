"""Compiled kernel of charged time on an axis: one sweep that lays what is active at once out side by side."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Floats, Ints
from neuron_tools.compiled import compiled, compiled_part, grown

_TOUCHING_NS = 1e-3
"""Pieces of one key that are no further apart are one: sums of shares are rounded."""
_FIRST_ROOM = 4096


@compiled
def lay_out(
    start: Ints, end: Ints, tier: npt.NDArray[np.int8], by_start: Ints, by_end: Ints,
    key: Ints, tiers: int,
) -> tuple[Floats, Floats, Ints]:  # fmt: skip
    """Lay the time in which anything is active out by key.

    A moment belongs to the first tier with an active span, and is divided equally among that tier's spans. A
    stretch in which the same keys share the time is cut into one piece for each, by ascending key.
    Costs O(n k) for n spans and k keys that are active at once.

    Args:
        start, end: (spans,) int64 ns; every span has a length.
        tier: (spans,) its priority, 0 the highest.
        by_start, by_end: (spans,) orders of the spans by start, and by end.
        key: (spans,) what each is charged to.

    Returns:
        Start and end in ns (float64) and key (int64) of each piece, in order.
    """
    spans = len(start)
    keys, counts = np.empty((tiers, spans), np.int64), np.empty((tiers, spans), np.int64)
    distinct, active = np.zeros(tiers, np.int64), np.zeros(tiers, np.int64)
    shared, sums = np.empty(spans, np.int64), np.empty(spans, np.float64)
    begins, ends = np.empty(_FIRST_ROOM, np.float64), np.empty(_FIRST_ROOM, np.float64)
    owners = np.empty(_FIRST_ROOM, np.int64)
    first = last = held = pieces = 0
    begin = now = start[by_start[0]] if spans else 0
    while last < spans:
        moment = end[by_end[last]]
        if first < spans and start[by_start[first]] < moment:
            moment = start[by_start[first]]
        if moment > now:
            top = _first_active(active)
            found = distinct[top] if top < tiers else 0
            if found != held or (found and _differ(keys, top, shared, found)):
                if pieces + held > len(begins):
                    room = 2 * (len(begins) + held)
                    begins, ends, owners = grown(begins, room), grown(ends, room), grown(owners, room)
                pieces = _append(float(begin), shared, sums, held, begins, ends, owners, pieces)
                held, begin = found, now
                for place in range(found):
                    shared[place], sums[place] = keys[top, place], 0.0
            for place in range(held):
                sums[place] += (moment - now) * counts[top, place] / active[top]
            now = moment
        while last < spans and end[by_end[last]] == now:
            span = by_end[last]
            _count(keys, counts, distinct, active, tier[span], key[span], -1)
            last += 1
        while first < spans and start[by_start[first]] == now:
            span = by_start[first]
            _count(keys, counts, distinct, active, tier[span], key[span], 1)
            first += 1
    if pieces + held > len(begins):
        room = 2 * (len(begins) + held)
        begins, ends, owners = grown(begins, room), grown(ends, room), grown(owners, room)
    pieces = _append(float(begin), shared, sums, held, begins, ends, owners, pieces)
    return begins[:pieces].copy(), ends[:pieces].copy(), owners[:pieces].copy()


@compiled_part
def _differ(keys: Ints, tier: int, others: Ints, count: int) -> bool:
    """Whether a tier's keys differ from others, of which there are so many; nothing is allocated."""
    place = 0
    while place < count and keys[tier, place] == others[place]:
        place += 1
    return place < count


@compiled_part
def _first_active(active: Ints) -> int:
    """The first tier with an active span; the number of tiers where none has one."""
    for tier in range(len(active)):
        if active[tier] > 0:
            return tier
    return len(active)


@compiled
def _count(
    keys: Ints, counts: Ints, distinct: Ints, active: Ints, tier: int, key: int,
    change: int,
) -> None:  # fmt: skip
    """Count a span of a key that begins (1) or ends (-1) in a tier; the tier's active keys ascend."""
    held = distinct[tier]
    place = 0
    while place < held and keys[tier, place] < key:
        place += 1
    active[tier] += change
    if place < held and keys[tier, place] == key:
        counts[tier, place] += change
        if counts[tier, place] == 0:
            distinct[tier] = held - 1
            for behind in range(place, held - 1):
                keys[tier, behind], counts[tier, behind] = keys[tier, behind + 1], counts[tier, behind + 1]
        return
    for behind in range(held, place, -1):
        keys[tier, behind], counts[tier, behind] = keys[tier, behind - 1], counts[tier, behind - 1]
    keys[tier, place], counts[tier, place] = key, change
    distinct[tier] = held + 1


@compiled
def _append(
    begin: float, keys: Ints, sums: Floats, count: int,
    start: Floats, end: Floats, owner: Ints, pieces: int,
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
