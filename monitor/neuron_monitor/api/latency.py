"""Latency histograms of executions, as simulated processes tell them, and the percentiles of what they added.

Bounds are 2^(1/8) apart, so a percentile is at most 9 % too high (docs/simulated-driver.md).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import accumulate, pairwise
from operator import add, sub
from typing import NamedTuple

PERCENTILES = (0, 1, 25, 50, 75, 99, 100)
# Percentile 0 is the first bound that any execution reached.
_SHARES = tuple(percentile / 100 for percentile in PERCENTILES[1:])
_REACHED_BY_ONE = 0.5
_MOST_KNOWN = 4096


class Bounds(NamedTuple):
    """Upper bounds, rising. Histograms of the same bounds share one object, so that `is` compares them."""

    ns: tuple[int, ...]
    seconds: tuple[float, ...]


class Histogram(NamedTuple):
    """Executions by the upper bound of their latency."""

    bounds: Bounds
    counts: list[int]


_known: dict[tuple[str, ...], Bounds | None] = {}
NO_BOUNDS = Bounds((), ())
EMPTY = Histogram(NO_BOUNDS, [])


def parse_histogram(told: Mapping[str, int]) -> Histogram:
    """A histogram {upper bound in ns, as text: count} of a process's file.

    Raises:
        ValueError: A bound is no number.
    """
    texts = tuple(told)
    if texts not in _known:
        _remember(texts)
    bounds = _known[texts]
    if bounds is not None:
        return Histogram(bounds, list(told.values()))
    rising = sorted(told, key=int)
    return Histogram(_bounds(map(int, rising)), [told[text] for text in rising])


def _remember(texts: tuple[str, ...]) -> None:
    """Know bounds by their texts from now on: None where those do not rise."""
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    ns = tuple(map(int, texts))
    _known[texts] = _bounds(ns) if all(one < next_ for one, next_ in pairwise(ns)) else None


def _bounds(ns: Iterable[int]) -> Bounds:
    rising = tuple(ns)
    return Bounds(rising, tuple(bound / 1e9 for bound in rising))


def added_between(before: Histogram, after: Histogram) -> Histogram:
    """What was counted between two looks at one histogram; never below 0."""
    if before.bounds is after.bounds:
        counts = list(map(sub, after.counts, before.counts))
    elif not before.counts:
        return after
    else:
        old = dict(zip(before.bounds.ns, before.counts))
        counts = [count - old.get(bound, 0) for bound, count in zip(after.bounds.ns, after.counts)]
    if min(counts, default=0) < 0:
        counts = [max(0, count) for count in counts]
    return Histogram(after.bounds, counts)


def together(histograms: Iterable[Histogram]) -> Histogram:
    """The sum of histograms."""
    total = EMPTY
    for each in histograms:
        if each.bounds is total.bounds:
            total = Histogram(total.bounds, list(map(add, total.counts, each.counts)))
        elif not total.counts:
            total = each
        elif each.counts:
            total = _joined(total, each)
    return total


def _joined(one: Histogram, other: Histogram) -> Histogram:
    counts = dict(zip(one.bounds.ns, one.counts))
    for bound, count in zip(other.bounds.ns, other.counts):
        counts[bound] = counts.get(bound, 0) + count
    rising = sorted(counts)
    return Histogram(_bounds(rising), [counts[bound] for bound in rising])


def percentiles(histogram: Histogram) -> dict[int, float] | None:
    """The upper bounds, in seconds, at which each of `PERCENTILES` is reached; None without any count."""
    reached = list(accumulate(histogram.counts))
    if not reached or not reached[-1]:
        return None
    total, seconds = reached[-1], histogram.bounds.seconds
    found = [seconds[bisect_left(reached, _REACHED_BY_ONE)]]
    found += [seconds[bisect_left(reached, share * total)] for share in _SHARES]
    return dict(zip(PERCENTILES, found))
