"""Draws lanes into columns: by compiled code once that is loaded, until then array by array.

Loading it takes longer than drawing a whole profile: the first drawings of a process do not wait for it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.errors import NeuronToolsError
from neuron_tools.profile.timeline import lane_table
from neuron_tools.profile.timeline.blob import Blob
from neuron_tools.profile.timeline.helping_threads import HELPING_THREADS
from neuron_tools.profile.timeline.lane import Lane, Spans
from neuron_tools.profile.timeline.lane_table import LaneTable
from neuron_tools.profile.timeline.pixels import LanePixels, lane_pixels

KINDS = ("i4", "i4", "i4", "i8", "f4", "i8", "i8", "i8", "i4")
"""Types of track, depth, pixel, count, busy share; row, start, duration and name of the span that shows."""
MOST_ROWS = 1 << 23  # at once: there is room for every pixel of every lane, of which what is drawn is used
DRAWINGS_WITHOUT = 2  # of a process, before it loads the compiled code: many commands draw once and end
ALIGNMENT = 64
ALL_DEPTHS = np.iinfo(np.int64).max

Columns = tuple[npt.NDArray[Any], ...]


class DrawKernel:
    """The compiled code, loaded by a thread of its own once a process has drawn a few times."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = 0
        self._loading: threading.Thread | None = None
        self._module: ModuleType | None = None

    def ready(self) -> ModuleType | None:
        """The code; None until it is loaded, and where it cannot be."""
        if self._module is None:
            self._asked += 1
            if self._asked > DRAWINGS_WITHOUT:
                self._load_aside()
        return self._module

    def wait(self) -> ModuleType | None:
        """The code, as soon as it is loaded; None where it cannot be."""
        self._load_aside().join()
        return self._module

    def _load_aside(self) -> threading.Thread:
        with self._lock:
            if self._loading is None:
                self._loading = threading.Thread(target=self._load, name="draw-kernel")
                self._loading.start()
            return self._loading

    def _load(self) -> None:
        try:
            from neuron_tools.profile.timeline import draw_kernel
        except (ImportError, NeuronToolsError):
            return  # NumPy draws the same, if more slowly
        self._module = draw_kernel


DRAW_KERNEL = DrawKernel()


class LaneDrawer:
    """Draws the lanes of an index.

    Args:
        table: Its lanes.
        blob: Its arrays.
    """

    def __init__(self, table: LaneTable, blob: Blob) -> None:
        self._table, self._blob = table, blob
        self._words = tuple(blob.words(size) for size in (1, 2, 4, 8))
        self._first = np.searchsorted(
            table.lanes[:, lane_table.TRACK],
            np.arange(table.lanes[-1, lane_table.TRACK] + 2 if len(table.lanes) else 1),
        )

    def lanes_of(self, track: int) -> range:
        """Rows of the lane table that belong to a track; none of a counter."""
        if track + 1 >= len(self._first):
            return range(0)
        return range(int(self._first[track]), int(self._first[track + 1]))

    def draw(self, tracks: Sequence[int], edges: Ints, deepest: int) -> Columns:
        """The pixels of tracks in which anything is, by track, depth and pixel, as columns of `KINDS`.

        Args:
            edges: int64, shape (pixels + 1,).
            deepest: This depth and deeper ones of a track are folded into one.
        """
        chosen = [np.asarray(self.lanes_of(track), np.int64) for track in tracks]
        places = np.concatenate(chosen) if chosen else np.zeros(0, np.int64)
        kernel = DRAW_KERNEL.ready() if self._blob.is_whole else None
        if kernel is None:
            parts = list(self._drawn(places, edges, deepest))
        else:
            some = max(MOST_ROWS // (len(edges) - 1), 1)
            shares = self._shares(places, -(-len(places) // some))
            parts = [self._compiled(kernel, share, edges, deepest) for share in shares]
        if len(parts) == 1:
            return parts[0]
        return tuple(
            np.concatenate([np.zeros(0, kind), *columns])
            for kind, *columns in zip(KINDS, *parts, strict=True)
        )

    def _shares(self, places: Ints, count: int) -> list[Ints]:
        """Lanes in so many shares of about one size, at most; those of a track stay together."""
        track = self._table.lanes[places, lane_table.TRACK]
        begins = np.append(np.flatnonzero(np.diff(track)) + 1, len(places))
        wanted = np.arange(1, count) * len(places) // max(count, 1)
        cuts = np.unique(begins[np.searchsorted(begins, wanted)]) if count > 1 else wanted
        return [share for share in np.split(places, cuts) if len(share)]

    def _compiled(self, kernel: ModuleType, places: Ints, edges: Ints, deepest: int) -> Columns:
        """The pixels of lanes, drawn by several threads into one array for each column."""
        table, pixels = self._table, len(edges) - 1
        out = _room(len(places) * pixels)
        shares = self._shares(places, HELPING_THREADS.shares(len(places) * pixels))
        begins = np.cumsum([0, *(len(share) * pixels for share in shares)]).tolist()

        def draw(share: Ints, begin: int) -> int:
            filled: int = kernel.draw(
                self._words, table.lanes, table.blocks, table.levels, share, deepest, edges, out, begin
            )
            return filled

        work = [partial(draw, share, begin) for share, begin in zip(shares, begins)]
        filled = 0
        for begin, end in zip(begins, HELPING_THREADS.run(work)):
            kernel.close_gap(out, filled, begin, end)
            filled += end - begin
        return tuple(column[:filled] for column in out)

    def _drawn(self, places: Ints, edges: Ints, deepest: int) -> Iterator[Columns]:
        keys = self._table.lanes[places][:, [lane_table.TRACK, lane_table.DEPTH]]
        shown = np.minimum(keys[:, 1], deepest)
        rows = zip(keys[:, 0].tolist(), shown.tolist(), places.tolist())
        for (track, depth), together in groupby(rows, lambda row: row[:2]):
            lanes = (Lane(self._table, place, self._blob) for _, _, place in together)
            found = [pixels for lane in lanes if (pixels := lane_pixels(lane, edges)) is not None]
            if found:
                yield _columns(track, depth, found[0] if len(found) == 1 else _folded(found))


def _room(rows: int) -> Columns:
    """Columns of `KINDS` in one piece of memory, for which the system takes large pages where it can."""
    sizes = [-(-rows * np.dtype(kind).itemsize // ALIGNMENT) * ALIGNMENT for kind in KINDS]
    room = np.empty(sum(sizes), np.uint8)
    begins = np.cumsum([0, *sizes]).tolist()
    return tuple(
        room[begin : begin + rows * np.dtype(kind).itemsize].view(kind) for begin, kind in zip(begins, KINDS)
    )


def _columns(track: int, depth: int, found: LanePixels) -> Columns:
    span = found.span
    values = (
        found.pixel,
        found.count,
        found.busy_share,
        span.row,
        span.start_ns,
        span.duration_ns,
        span.name,
    )
    same = (np.full(len(found.pixel), number) for number in (track, depth))
    return tuple(
        column.astype(kind, copy=False) for kind, column in zip(KINDS, (*same, *values), strict=True)
    )


def _folded(found: Sequence[LanePixels]) -> LanePixels:
    """One lane of several: counts add up, the busiest share and the longest span stay."""
    pixel = np.concatenate([lane.pixel for lane in found])
    duration = np.concatenate([lane.span.duration_ns for lane in found]).astype(np.int64)
    order = np.lexsort((-duration, pixel))
    first = np.flatnonzero(np.diff(pixel[order], prepend=-1))
    shown = order[first]
    spans = [
        np.concatenate([column.astype(np.int64) for column in columns])[shown]
        for columns in zip(*((s.start_ns, s.duration_ns, s.name, s.row) for s in (f.span for f in found)))
    ]
    return LanePixels(
        pixel[shown],
        np.add.reduceat(np.concatenate([lane.count for lane in found])[order], first),
        np.maximum.reduceat(np.concatenate([lane.busy_share for lane in found])[order], first),
        Spans(*spans),
    )
