"""Builds the lanes of one track from its rows, which come in order of start, a batch at a time."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from neuron_tools.profile.timeline.blob import BlobWriter
from neuron_tools.profile.timeline.depths import DepthAssigner, Depths
from neuron_tools.profile.timeline.labels import Labels
from neuron_tools.profile.timeline.lanes import LaneWriter
from neuron_tools.profile.timeline.modules import ModuleSpans
from neuron_tools.profile.timeline.scan import Names, TrackKey, TrackRows
from neuron_tools.profile.timeline.segment import Segment, in_order
from neuron_tools.profile.timeline.sources import MODULE_LEVEL, SpanSource
from neuron_tools.profile.timeline.track import Track

BLOCK_SPANS = 1 << 15
Entry = tuple[tuple[object, ...], dict[str, Any]]
"""How a track sorts among the others, and what the index says of it."""


class TrackBuilder:
    """Takes the rows of one track.

    Attributes:
        is_ordered: False once rows came that start before earlier ones; what was built is then of no use.
        is_ascending: False once rows came that start before earlier ones; unlike above, not at the same time.
    """

    def __init__(
        self, source: SpanSource, key: TrackKey, names: Names, labels: Labels, blob: BlobWriter
    ) -> None:
        self.is_ordered = self.is_ascending = True
        self._source, self._key, self._labels = source, key, labels
        self._held: list[Segment] = []
        self._held_spans = 0
        self._last_ns: int | None = None
        self._depths = DepthAssigner()
        self._modules = ModuleSpans(names)
        self._lanes: dict[int, LaneWriter] = defaultdict(lambda: LaneWriter(blob))
        self._module_lanes: dict[int, LaneWriter] = defaultdict(lambda: LaneWriter(blob))

    def add(self, rows: Segment | TrackRows) -> None:
        """Take further rows, in ascending order of start."""
        first, last = int(rows.start_ns[0]), int(rows.start_ns[-1])
        if self._last_ns is not None and first < self._last_ns:
            self.is_ascending = False
        # Rows that start with the last one may have to stand before it: the longest comes first.
        if self._last_ns is not None and first <= self._last_ns:
            self.is_ordered, self._held = False, []
        self._last_ns = last
        if not self.is_ordered:
            return
        self._held.append(Segment(rows.start_ns, rows.duration_ns, rows.name, rows.row, rows.layer).apart())
        self._held_spans += len(rows.start_ns)
        if self._held_spans >= BLOCK_SPANS:
            self._build()

    def finish(self) -> list[Entry]:
        """Entries of the track and, where its spans stand in modules, of the track of those."""
        if self._held:
            self._build()
        track = self._labels.describe(self._source, self._key)
        entries = [self._entry(track, self._lanes)]
        if self._module_lanes:
            track = self._labels.describe(self._source, self._key, level=MODULE_LEVEL, title="Modules")
            entries.append(self._entry(track, self._module_lanes))
        return entries

    def _build(self) -> None:
        segment, self._held, self._held_spans = in_order(self._held), [], 0
        depths = self._depths.assign(segment.start_ns, segment.start_ns + segment.duration_ns)
        for depth, spans in _by_depth(segment, depths):
            self._lanes[depth].append(spans)
        for depth, spans in self._modules.add(segment) if self._source.layers else ():
            self._module_lanes[depth].append(spans)

    def _entry(self, track: Track, lanes: Mapping[int, LaneWriter]) -> Entry:
        stored = [lane for lane in (lanes[depth].finish() for depth in sorted(lanes)) if lane["spans"]]
        counts = {
            "spans": sum(lane["spans"] for lane in stored),
            "depths": len(stored),
            "start_ns": min(lane["start_ns"] for lane in stored),
            "end_ns": max(lane["end_ns"] for lane in stored),
        }
        return self._labels.order(track, self._key), {**asdict(track), **counts, "lanes": stored}


def _by_depth(segment: Segment, depths: Depths) -> list[tuple[int, Segment]]:
    """The spans of each depth, in order."""
    deepest = int(depths.max())
    if not deepest:
        return [(0, segment)]
    order = np.argsort(depths.astype(np.uint16), kind="stable")  # a radix sort
    edges = np.searchsorted(depths[order], np.arange(deepest + 2)).tolist()
    by_depth = segment.take(order)
    return [
        (depth, by_depth.take(slice(low, high)))
        for depth, (low, high) in enumerate(itertools.pairwise(edges))
    ]
