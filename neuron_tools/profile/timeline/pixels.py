"""What to draw in each pixel of a lane: how many spans begin, how much is busy, which span shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neuron_tools.profile.timeline.lane import Lane, LaneView
from neuron_tools.profile.timeline.scan import Ints


@dataclass(frozen=True, slots=True)
class LanePixels:
    """The pixels of one lane in which anything is; all of shape (pixels,).

    Attributes:
        pixel: int64, ascending.
        count: Spans that begin in it.
        busy_share: float64, 0 to 1.
        span: Number in the lane of the span that shows.
        start_ns, duration_ns, name: Of that span.
    """

    pixel: Ints
    count: Ints
    busy_share: npt.NDArray[np.float64]
    span: Ints
    start_ns: Ints
    duration_ns: Ints
    name: Ints


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
    begun = np.searchsorted(view.begin_ns, edges)
    count = np.diff(view.first[begun])
    width = np.maximum(np.diff(edges), 1)
    busy_share = np.clip(np.diff(_busy_before(view, edges)) / width, 0.0, 1.0)
    kept = np.flatnonzero((count > 0) | (busy_share > 0))
    if not len(kept):
        return None
    span = _shown(lane, view, edges, begun)
    return LanePixels(kept, count[kept], busy_share[kept], *(column[kept] for column in span))


def _busy_before(view: LaneView, edges: Ints) -> npt.NDArray[np.float64]:
    """Busy time of the lane before each edge, counted from some fixed time."""
    entry = np.searchsorted(view.begin_ns, edges, side="right") - 1
    at = np.maximum(entry, 0)
    busy = view.busy_ns[at + 1] - np.maximum(view.until_ns[at] - edges, 0).astype(np.float64)
    if view.window_ns:
        busy = np.where(edges < _window_end(view)[at], _within(view, edges, at), busy)
    return np.where(entry < 0, float(view.busy_ns[0]), busy)


def _window_end(view: LaneView) -> Ints:
    """Windows begin at multiples of their length; the first may be cut to where its spans begin."""
    return (view.begin_ns & -view.window_ns) + view.window_ns


def _within(view: LaneView, edges: Ints, at: Ints) -> npt.NDArray[np.float64]:
    """Busy time before edges that lie inside the windows `at`: in proportion between the windows' ends."""
    begin, end = view.begin_ns[at], _window_end(view)[at]
    earlier = np.where(at > 0, view.until_ns[at - 1], begin)
    low = view.busy_ns[at] - np.maximum(earlier - begin, 0)
    high = view.busy_ns[at + 1] - np.maximum(view.until_ns[at] - end, 0)
    busy: npt.NDArray[np.float64] = low + (high - low) * ((edges - begin) / np.maximum(end - begin, 1))
    return busy


def _shown(lane: Lane, view: LaneView, edges: Ints, begun: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Each pixel's span: one that covers at least half of it, or else the longest that begins there."""
    longest = _longest(view, begun)
    columns = tuple(
        column[longest]
        for column in (view.longest, view.longest_start_ns, view.longest_duration_ns, view.longest_name)
    )
    before = np.maximum(begun[:-1] - 1, 0)
    covered = np.minimum(view.until_ns[before], edges[1:]) - edges[:-1]
    empty = begun[1:] == begun[:-1]
    covering = (begun[:-1] > 0) & ((2 * covered >= np.diff(edges)) | empty) & (covered > 0)
    places = np.flatnonzero(covering)
    if len(places):
        numbers, which = np.unique(view.first[before[places] + 1] - 1, return_inverse=True)
        found = lane.at(numbers)
        for column, values in zip(
            columns, (found.number, found.start_ns, found.duration_ns, found.name), strict=True
        ):
            column[places] = values[which]
    return columns[0], columns[1], columns[2], columns[3]


def _longest(view: LaneView, begun: Ints) -> Ints:
    """Entry with the longest span among those that begin in each pixel; some entry where none does."""
    found = np.minimum(begun[:-1], len(view.begin_ns) - 1)
    full = np.flatnonzero(begun[1:] > begun[:-1])
    if len(full):
        bits = max(len(view.begin_ns) - 1, 1).bit_length()
        place = np.arange(begun[-1], dtype=np.int64)
        key = (np.minimum(view.longest_duration_ns[: begun[-1]], (1 << 62 - bits) - 1) << bits) | place
        found[full] = np.maximum.reduceat(key, begun[:-1][full]) & ((1 << bits) - 1)
    return found
