"""Flow events ("s", "t", "f"): which spans they tie together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.profile.importers.json_rows import JsonRows
from neuron_tools.profile.importers.recording import LANE, Recording
from neuron_tools.profile.importers.span_pairs import enclosing_spans
from neuron_tools.profile.importers.spans import stage_flows

_START, _STEP, _END = 0, 1, 2
_RANKS = {ord("s"): _START, ord("t"): _STEP, ord("f"): _END}
_MIX = np.uint64(0x9E3779B97F4A7C15)


class FlowEvents:
    """Gathers flow events, and at the end makes Flow rows of them.

    A flow event is tied to the span that begins with it and stands before it in the file, or else to the
    innermost span that is open on its thread at its time.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._parts: list[tuple[npt.NDArray[Any], ...]] = []

    def add(
        self,
        rows: JsonRows,
        phase: npt.NDArray[np.uint8],
        time_ns: Ints,
        lane: Ints,
        span: Ints,
    ) -> None:
        """Adds events in order; `span` is the id of the span that each belongs to, -1 if not known yet."""
        key = rows.hashes("id") ^ (rows.hashes("cat") * _MIX) ^ ((rows.hashes("name") * _MIX) >> np.uint64(1))
        rank = np.select([phase == letter for letter in _RANKS], list(_RANKS.values())).astype(np.int8)
        self._parts.append((key, rank, time_ns, lane.astype(np.int32), span))

    def finish(self) -> None:
        """Stages the Flow rows."""
        if not self._parts:
            return
        key, rank, time_ns, lane, span = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        self._parts.clear()
        self._bind(time_ns, lane, span)
        lost = int(np.count_nonzero(span < 0))
        self._recording.warn(f"{lost:,} flow events without a span were left out.", count=min(lost, 1))
        known = span >= 0
        if not known.any():
            return
        source, target = _edges(key[known], rank[known], time_ns[known], span[known])
        stage_flows(self._recording, source, target)

    def _bind(self, time_ns: Ints, lane: npt.NDArray[np.int32], span: Ints) -> None:
        """Finds the spans of the events that have none, among the staged ones."""
        waiting = np.flatnonzero(span < 0)
        if not len(waiting):
            return
        waiting = waiting[np.lexsort((time_ns[waiting], lane[waiting]))]
        ids, starts, ends, edges = self._spans_of(np.unique(lane[waiting]))
        for number, (first, last) in edges.items() if len(ids) else ():
            low, high = np.searchsorted(lane[waiting], [number, number + 1])
            found = np.full(high - low, -1, np.int64)
            enclosing_spans(starts, ends, first, last, time_ns[waiting[low:high]], found)
            span[waiting[low:high]] = np.where(found >= 0, ids[found], -1)

    def _spans_of(self, lanes: npt.NDArray[np.int32]) -> tuple[Ints, Ints, Ints, dict[int, tuple[int, int]]]:
        """Spans of some lanes, by lane and nesting; and where each lane's stand."""
        parts = []
        for batch in self._recording.staged("TraceSpan"):
            own = batch.column(LANE).to_numpy()
            chosen = np.flatnonzero(np.isin(own, lanes))
            columns = (batch.column(name).to_numpy()[chosen] for name in ("id", "start_ts", "end_ts"))
            parts.append((own[chosen], *columns))
        parts = parts or [(lanes[:0], *(np.zeros(0, np.int64) for _ in range(3)))]
        own, ids, starts, ends = (np.concatenate(column) for column in zip(*parts, strict=True))
        parts.clear()
        order = np.lexsort((-ends, starts, own))
        own, ids, starts, ends = own[order], ids[order], starts[order], ends[order]
        places = {
            int(lane): (int(np.searchsorted(own, lane)), int(np.searchsorted(own, lane, "right")))
            for lane in lanes
        }
        return ids, starts, ends, places


def _edges(
    key: npt.NDArray[np.uint64], rank: npt.NDArray[np.int8], time_ns: Ints, span: Ints
) -> tuple[Ints, Ints]:
    """Pairs of spans: each step and end with the start or step before it of the same flow.

    An id that starts once is one flow, whatever its times say; one that starts again is told apart by time.
    """
    _, group = np.unique(key, return_inverse=True)
    starts = np.bincount(group, weights=rank == _START)
    time_ns = np.where(starts[group] <= 1, 0, time_ns)
    order = np.lexsort((np.arange(len(key)), rank, time_ns, group))
    group, rank, span = group[order], rank[order], span[order]
    position = np.arange(len(group))
    leads = np.maximum.accumulate(np.where(rank != _END, position, -1))
    before = np.where(rank == _END, leads, np.append(-1, leads[:-1]))
    fits = (rank != _START) & (before >= 0)
    fits &= group[np.maximum(before, 0)] == group
    return span[before[fits]], span[fits]
