"""What to draw in each pixel of a lane: how many spans begin, how much is busy, which span shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.timeline.lane import Lane, LaneView, Spans

_NEVER = np.iinfo(np.int64).min >> 1


@frozen
class LanePixels:
    """The pixels of one lane in which anything is; all of shape (pixels,).

    Attributes:
        pixel: int64, ascending.
        count: Spans that begin in it.
        busy_share: float64, 0 to 1.
        span: The span that shows.
    """

    pixel: Ints
    count: Ints
    busy_share: npt.NDArray[np.float64]
    span: Spans


def pixel_edges(start_ns: int, end_ns: int, pixels: int) -> Ints:
    """Times at which pixels begin, and the last one's end; int64, shape (pixels + 1,)."""
    whole, rest = divmod(end_ns - start_ns, pixels)
    place = np.arange(pixels + 1, dtype=np.int64)
    return start_ns + place * whole + place * rest // pixels


def lane_pixels(lane: Lane, edges: Ints) -> LanePixels | None:
    """Draw a lane; None where nothing of it lies between the edges.

    Where pixels hold many spans, windows stand for them: a span then counts in the pixel in which its
    window begins, at most one pixel early.
    """
    start, end = int(edges[0]), int(edges[-1])
    view = lane.view(start, end, (end - start) / (len(edges) - 1))
    if view is None:
        return None
    begun = view.begin_ns.searchsorted(edges)
    until = np.concatenate([[_NEVER], view.until_ns])[begun]
    count = np.diff(begun if view.first is None else view.first[begun])
    busy_ns = np.diff(_busy_before(view, edges, begun, until))
    kept = ((count > 0) | (busy_ns > 0)).nonzero()[0]
    if not len(kept):
        return None
    width = edges[kept + 1] - edges[kept]
    busy_share = np.minimum(busy_ns[kept] / np.maximum(width, 1), 1.0)
    shown = _Shown(begun[kept], begun[kept + 1], until[kept] - edges[kept], width)
    return LanePixels(kept, count[kept], busy_share, _shown_spans(lane, view, shown))


@frozen
class _Shown:
    """Of each pixel in which anything is: its first entry and that after its last, and what covers it.

    Attributes:
        reach_ns: How far spans that began before the pixel reach into it and on; not positive if none does.
    """

    low: Ints
    high: Ints
    reach_ns: Ints
    width_ns: Ints


def _busy_before(view: LaneView, edges: Ints, begun: Ints, until: Ints) -> npt.NDArray[np.float64]:
    """Busy time of the lane before each edge, counted from some fixed time.

    Args:
        begun: Entries that begin before each edge.
        until: When the last span of those ends.
    """
    before = view.busy_ns[begun]
    busy: npt.NDArray[np.float64] = before - np.maximum(until - edges, 0.0)
    if not view.window_ns:
        return busy
    entry = np.maximum(begun - 1, 0)
    begin = view.begin_ns[entry]
    end = (begin & -view.window_ns) + view.window_ns  # the first window may be cut to where spans begin
    inside = (edges < end) & (begun > 0)
    # Inside a window, in proportion between its ends.
    earlier = np.where(entry > 0, view.until_ns[entry - 1], begin)
    low = view.busy_ns[entry] - np.maximum(earlier - begin, 0)
    high = before - np.maximum(until - end, 0)
    within = low + (high - low) * ((edges - begin) / (end - begin))
    return np.where(inside, within, busy)


def _shown_spans(lane: Lane, view: LaneView, shown: _Shown) -> Spans:
    """Each pixel's span: one that covers at least half of it, or else the longest that begins there."""
    covered_ns = np.minimum(shown.reach_ns, shown.width_ns)
    is_covered = (shown.low == shown.high) | (2 * covered_ns >= shown.width_ns)
    is_covered &= shown.reach_ns > 0
    entries = _longest(view, shown.low, shown.high)
    if view.first is None:
        entries[is_covered] = shown.low[is_covered] - 1
        return view.longest(entries)
    found = view.longest(entries)
    # A window reaches into the pixel, but only a span that is as long can have begun before it.
    is_covered &= shown.reach_ns <= view.longest_ns[np.maximum(shown.low - 1, 0)]
    places = is_covered.nonzero()[0]
    if not len(places):
        return found
    # What covers a pixel is the last span of the window before it, not that window's longest.
    numbers, which = np.unique(view.first[shown.low[places]] - 1, return_inverse=True)
    covering = lane.at(numbers)
    return Spans(
        _replaced(found.start_ns, places, covering.start_ns[which]),
        _replaced(found.duration_ns, places, covering.duration_ns[which]),
        _replaced(found.name, places, covering.name[which]),
        _replaced(found.row, places, covering.row[which]),
    )


def _replaced(values: npt.NDArray[Any], places: Ints, by: Ints) -> Ints:
    replaced = values.astype(np.int64)
    replaced[places] = by
    return replaced


def _longest(view: LaneView, low: Ints, high: Ints) -> Ints:
    """Entry with the longest span among those from `low` to `high`; the one before where there is none."""
    last = len(view.begin_ns) - 1
    found: Ints = np.maximum(low - (low == high), 0)
    several = (high > low + 1).nonzero()[0]
    if len(several):
        bits = max(last, 1).bit_length()
        key = view.longest_ns.astype(np.int64)
        if view.longest_ns.itemsize == key.itemsize:
            np.minimum(key, (1 << 62 - bits) - 1, out=key)
        key <<= bits
        key |= np.arange(len(key), dtype=np.int64)
        edges = np.empty(2 * len(several), np.int64)
        edges[::2], edges[1::2] = low[several], np.minimum(high[several], last)
        greatest = np.maximum.reduceat(key, edges)[::2]
        if high[several[-1]] > last:
            greatest[-1] = max(int(greatest[-1]), int(key[-1]))
        found[several] = greatest & ((1 << bits) - 1)
    return found
