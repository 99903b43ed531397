"""Charged time on an axis: which operation each moment of a NeuronCore is charged to, without overlap.

The rule is that of `charges`: a moment belongs to the first tier with an active span. Where spans of
several operations are active in that tier, the stretch in which they are is cut into one piece for each, as
long as its share. So the pieces of an operation are as long together as what it is charged with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.time.exposure import Spans
from neuron_profile.analysis.time.pieces_kernel import lay_out

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pieces:
    """Stretches of time that do not overlap, in order; arrays of shape (pieces,).

    Attributes:
        key: What each is charged to.
    """

    start_ns: Floats
    end_ns: Floats
    key: Ints

    def chosen(self, mask: npt.NDArray[np.bool_]) -> Pieces:
        """Some of the pieces."""
        return Pieces(self.start_ns[mask], self.end_ns[mask], self.key[mask])

    def cut(self, begin_ns: int, end_ns: int) -> Pieces:
        """What of the pieces lies in a range."""
        low = int(np.searchsorted(self.end_ns, begin_ns, "right"))
        high = int(np.searchsorted(self.start_ns, end_ns, "left"))
        start, end = np.maximum(self.start_ns[low:high], begin_ns), np.minimum(self.end_ns[low:high], end_ns)
        return Pieces(start, end, self.key[low:high])


@dataclass(frozen=True, slots=True)
class _Parts:
    """Parts of intervals: how long each span has of an interval."""

    interval: Ints
    span: Ints
    length_ns: Floats


@dataclass(frozen=True, slots=True)
class Division:
    """The time of spans divided among them, whatever they are charged to.

    Attributes:
        moments: All starts and ends in ns, ascending.
        interval, span, length_ns: Of each part: the interval between neighbouring moments, ascending, the
            span, counted over all tiers, and what it has of the interval.
    """

    moments: Ints
    interval: Ints
    span: Ints
    length_ns: Floats


def divide(tiers: Sequence[Spans]) -> Division:
    """Divide the time of spans among them.

    Costs O(n log n + m) for n spans and m pairs of a span and an interval between neighbouring moments in
    which its tier is the first.

    Args:
        tiers: Spans by falling priority; every span has a length.
    """
    edges = np.concatenate([edge for tier in tiers for edge in (tier.start_ns, tier.end_ns)])
    moments, position = np.unique(edges, return_inverse=True)
    free = np.ones(max(len(moments) - 1, 0), bool)
    found, taken = [], 0
    for tier in tiers:
        count = len(tier.start_ns)
        first, last = np.split(position[2 * taken : 2 * (taken + count)], 2)
        active = _active_count(first, last, len(moments))
        mine = free & (active > 0)
        spans = np.arange(taken, taken + count)
        found.append(_parts(first, last, spans, mine, np.diff(moments) / np.maximum(active, 1)))
        free &= ~mine
        taken += count
    interval, span, length = (
        np.concatenate([getattr(parts, name) for parts in found])
        for name in ("interval", "span", "length_ns")
    )
    order = np.argsort(interval, kind="stable")
    return Division(moments, interval[order], span[order], length[order])


def pieces_of(division: Division, keys: Ints) -> Pieces:
    """The stretches that each key has of a division.

    Args:
        keys: What each span is charged to, over all tiers, (spans,).
    """
    parts = len(division.span)
    start, end, owner = np.empty(parts), np.empty(parts), np.empty(parts, np.int64)
    count = lay_out(
        division.moments, division.interval, keys[division.span], division.length_ns, start, end, owner
    )
    return Pieces(start[:count], end[:count], owner[:count])


def _active_count(first: Ints, last: Ints, moments: int) -> Ints:
    change = np.bincount(first, minlength=moments) - np.bincount(last, minlength=moments)
    return np.cumsum(change)[:-1]


def _parts(first: Ints, last: Ints, span: Ints, mine: npt.NDArray[np.bool_], share_ns: Floats) -> _Parts:
    """What each span of a tier has of the intervals that are the tier's."""
    intervals = np.flatnonzero(mine)
    before = np.concatenate([[0], np.cumsum(mine)])
    begin, count = before[first], before[last] - before[first]
    offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    interval = intervals[np.repeat(begin, count) + offset]
    return _Parts(interval, np.repeat(span, count), share_ns[interval])


def _changes(values: Ints) -> npt.NDArray[np.bool_]:
    """Whether each value differs from the one before it; the first does."""
    changed = np.ones(len(values), bool)
    changed[1:] = values[1:] != values[:-1]
    return changed


def merged(pieces: Pieces) -> Pieces:
    """Pieces of one key that follow each other without a gap as one."""
    if not len(pieces.key):
        return pieces
    gap = np.ones(len(pieces.key), bool)
    gap[1:] = pieces.start_ns[1:] - pieces.end_ns[:-1] > 1e-3
    opens = np.flatnonzero(_changes(pieces.key) | gap)
    closes = np.append(opens[1:], len(pieces.key)) - 1
    return Pieces(pieces.start_ns[opens], pieces.end_ns[closes], pieces.key[opens])


def divided(pieces: Pieces, mixtures: Sequence[tuple[Ints, Floats]], first: int) -> Pieces:
    """Pieces of mixtures cut into those of their keys, each as long as its share.

    Args:
        mixtures: (keys, shares) of each; the shares sum to 1.
        first: Key of the first mixture; the others follow.
    """
    if not mixtures or not len(pieces.key):
        return pieces
    mixed = np.maximum(pieces.key - first, -1)
    sizes = np.array([1, *(len(keys) for keys, _ in mixtures)])
    begins = np.concatenate([[0], np.cumsum(sizes)])
    shares = np.concatenate([np.ones(1), *(share for _, share in mixtures)])
    ends = np.concatenate([np.ones(1), *(np.cumsum(share) for _, share in mixtures)])
    keys = np.concatenate([[0], *(key for key, _ in mixtures)])
    count = sizes[mixed + 1]
    offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    at = np.repeat(begins[mixed + 1], count) + offset
    start, length = (np.repeat(each, count) for each in (pieces.start_ns, pieces.end_ns - pieces.start_ns))
    key = np.where(np.repeat(mixed, count) < 0, np.repeat(pieces.key, count), keys[at])
    return merged(Pieces(start + length * (ends[at] - shares[at]), start + length * ends[at], key))
