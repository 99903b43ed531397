"""Latency histograms of executions, as simulated processes tell them, and the percentiles of what they added.

Bounds are 2^(1/8) apart, so a percentile is at most 9 % too high (docs/simulated-driver.md).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from operator import add, ge
from typing import NamedTuple

from neuron_monitor.api import kernels
from neuron_monitor.api.layout import WORD_BYTES

PERCENTILES = (0, 1, 25, 50, 75, 99, 100)
SHARES = tuple(percentile / 100 for percentile in PERCENTILES)
_MOST_KNOWN = 4096
_LONGEST_NS = (1 << 63) - 1


class Bounds(NamedTuple):
    """Upper bounds, rising. Histograms of the same bounds share one object, so that `is` compares them."""

    ns: tuple[int, ...]
    seconds: tuple[float, ...]


class Histogram(NamedTuple):
    """Executions by the upper bound of their latency.

    Attributes:
        words: Their counts as little-endian 64-bit integers; `counts` has them as numbers.
    """

    bounds: Bounds
    words: bytes

    @property
    def counts(self) -> tuple[int, ...]:
        """Executions of each bound."""
        return kernels.words(self.words, 0, len(self.words) // WORD_BYTES)


def histogram(bounds: Bounds, counts: Sequence[int]) -> Histogram:
    """A histogram of counts.

    Raises:
        ValueError: A count is no integer of 64 bits.
    """
    try:
        return Histogram(bounds, struct.pack(f"<{len(counts)}q", *counts))
    except struct.error as error:
        raise ValueError(str(error)) from error


_known: dict[tuple[str, ...], Bounds | None] = {}
NO_BOUNDS = Bounds((), ())
EMPTY = Histogram(NO_BOUNDS, b"")


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
        return histogram(bounds, tuple(told.values()))
    rising = sorted(told, key=int)
    return histogram(_bounds(map(int, rising)), tuple([told[text] for text in rising]))


def _remember(texts: tuple[str, ...]) -> None:
    """Know bounds by their texts from now on: None where those do not rise."""
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    ns = tuple(map(int, texts))
    _known[texts] = _bounds(ns) if all(one < next_ for one, next_ in pairwise(ns)) else None


@lru_cache(maxsize=_MOST_KNOWN)
def known_bounds(words: bytes) -> Bounds:
    """The one object of these upper bounds, which rise; they are little-endian 64-bit integers."""
    return _bounds(kernels.words(words, 0, len(words) // WORD_BYTES))


def _bounds(ns: Iterable[int]) -> Bounds:
    """Bounds that rise.

    Raises:
        ValueError: They do not, or are no times that an execution can take.
    """
    rising = tuple(ns)
    if rising and (rising[0] < 0 or rising[-1] > _LONGEST_NS or any(map(ge, rising, rising[1:]))):
        raise ValueError("bounds of latencies do not rise")
    return Bounds(rising, tuple(bound / 1e9 for bound in rising))


def added_between(before: Histogram, after: Histogram) -> Histogram:
    """What was counted between two looks at one histogram; never below 0."""
    old = dict(zip(before.bounds.ns, before.counts))
    added = [max(0, count - old.get(bound, 0)) for bound, count in zip(after.bounds.ns, after.counts)]
    return histogram(after.bounds, added)


def together(histograms: Iterable[Histogram]) -> Histogram:
    """The sum of histograms."""
    total = EMPTY
    for each in histograms:
        if each.bounds is total.bounds:
            total = histogram(total.bounds, tuple(map(add, total.counts, each.counts)))
        elif not total.words:
            total = each
        elif each.words:
            total = _joined(total, each)
    return total


def _joined(one: Histogram, other: Histogram) -> Histogram:
    counts = dict(zip(one.bounds.ns, one.counts))
    for bound, count in zip(other.bounds.ns, other.counts):
        counts[bound] = counts.get(bound, 0) + count
    rising = sorted(counts)
    return histogram(_bounds(rising), [counts[bound] for bound in rising])


def percentiles(histogram: Histogram) -> dict[int, float] | None:
    """The upper bounds, in seconds, at which each of `PERCENTILES` is reached; None without any count."""
    seconds = seconds_between(EMPTY, histogram)
    return dict(zip(PERCENTILES, seconds)) if seconds else None


def seconds_between(before: Histogram, after: Histogram) -> tuple[float, ...]:
    """The percentiles of what was counted between two looks at one histogram; () where nothing was."""
    if before.bounds is not after.bounds and before.words:
        before, after = EMPTY, added_between(before, after)
    seconds = after.bounds.seconds
    return tuple([seconds[at] for at in kernels.reached_at(before.words, after.words, SHARES)])
