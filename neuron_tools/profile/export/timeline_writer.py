"""Drives a `TimelineSink`: reads a profile's tables in order, sets their rows on tracks and lanes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.export.lanes import NestedLanes, nested_event_order
from neuron_tools.profile.export.modules import ModuleSpans
from neuron_tools.profile.export.report import Progress, RowCounter
from neuron_tools.profile.export.source import ProfileSource, Tables, ahead
from neuron_tools.profile.export.stored_rows import StoredSource, can_be_read_as_stored, stored_rows
from neuron_tools.profile.export.timeline import END_OF_SLICE, SliceEvents, Slices, TimelineSink, Track
from neuron_tools.profile.export.timeline_queries import counter_query, span_query
from neuron_tools.profile.export.timeline_sources import (
    COUNTER_SOURCES,
    ENGINE_RANKS,
    SPAN_SOURCES,
    TRACE_COUNTER,
    CounterSource,
    Place,
    SpanSource,
)
from neuron_tools.profile.export.tracks import TrackTree, process_names, trace_tracks
from neuron_tools.profile.store.recorded import text_codes
from neuron_tools.profile.timeline.depths import DepthAssigner


def write_timeline(
    profile: ProfileSource, sink: TimelineSink, *, flows: bool = True, progress: Progress | None = None
) -> dict[str, int]:
    """Sends a whole profile to a sink.

    Args:
        profile: Where the rows come from.
        sink: The format being written.
        flows: Whether to draw the edges of the Flow table.
        progress: Told after each batch.

    Returns:
        Number of slices by kind, "modules", "slices" (all of them), "counters" (samples), "flows", "tracks".
    """
    tables = Tables(profile)
    sources = [source for source in SPAN_SOURCES if tables.count(source.table)]
    counters = [source for source in COUNTER_SOURCES if tables.has(source.table, source.column)]
    read_tables = [*(source.table for source in sources), *(source.table for source in counters)]
    rows = RowCounter(progress, sum(tables.count(table) for table in read_tables))
    writer = _Writer(sink, TrackTree(sink, process_names(tables), trace_tracks(tables)), rows)
    for source in sources:
        writer.write_spans(source, tables, flows=flows)
    for counter in counters:
        writer.write_counter(counter, tables)
    counts = dict(writer.counts)
    counts["slices"] = writer.counts.total() - writer.counts["counters"]
    counts["flows"] = min(writer.flow_starts, writer.flow_ends)
    counts["tracks"] = len(writer.tree)
    return counts


@frozen
class _Run:
    """Rows of a batch, from the first to before the last, that belong to one track."""

    key: tuple[int, int, str]
    first: int
    last: int


@dataclass
class _OpenTrack:
    """What is remembered of a track between batches: its lanes, and what is open on them."""

    key: tuple[int, int, str]
    lanes: DepthAssigner | NestedLanes
    modules: ModuleSpans
    tracks: list[Track] = field(default_factory=list)
    open_ends: dict[int, Ints] = field(default_factory=dict)

    def events(self, nested: bool, start_ns: Ints, end_ns: Ints) -> SliceEvents:
        """Begins and ends of further spans, in order of start, on the track's lanes."""
        lanes = self.lanes.assign(start_ns, end_ns)
        return (
            self.nested_events(start_ns, end_ns, lanes) if nested else _flat_events(start_ns, end_ns, lanes)
        )

    def nested_events(self, start_ns: Ints, end_ns: Ints, lanes: npt.NDArray[np.int32]) -> SliceEvents:
        """Events of nested slices, lane after lane."""
        parts = []
        for lane in np.unique(lanes).tolist():
            rows = np.flatnonzero(lanes == lane)
            open_ends = self.open_ends.get(lane, np.zeros(0, np.int64))
            time, row, self.open_ends[lane] = nested_events(start_ns[rows], end_ns[rows], open_ends)
            own = np.where(row == END_OF_SLICE, END_OF_SLICE, rows[np.maximum(row, 0)])
            parts.append((time, own, np.full(len(time), lane, np.int32)))
        return SliceEvents(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class _Writer:
    def __init__(self, sink: TimelineSink, tree: TrackTree, rows: RowCounter) -> None:
        self.sink = sink
        self.tree = tree
        self.counts: Counter[str] = Counter()
        self.flow_starts = 0
        self.flow_ends = 0
        self._rows = rows

    def write_spans(self, source: SpanSource, tables: Tables, *, flows: bool) -> None:
        open_tracks: dict[tuple[int, int, str], _OpenTrack] = {}
        for batch in _rows(source, tables, flows=flows):
            runs = _runs(batch)
            for run in runs:
                if run.key not in open_tracks:
                    open_tracks[run.key] = _open_track(source, run.key)
            if source.layered:
                for run in runs:
                    self._add_layered(
                        source, open_tracks[run.key], batch.slice(run.first, run.last - run.first)
                    )
            else:
                self._add(source, [(run, open_tracks[run.key]) for run in runs], self._counted(source, batch))
            self._rows.advance(batch.num_rows)
        for open_track in open_tracks.values():
            self._finish(open_track)

    def write_counter(self, source: CounterSource, tables: Tables) -> None:
        for window in tables.windows(source.table, 't."timestamp"'):
            self._write_samples(source, tables, window)

    def _write_samples(self, source: CounterSource, tables: Tables, window: str) -> None:
        for batch in tables.batches(counter_query(source, tables, window)):
            place = _int_columns(batch, "process_idx", "place_idx")
            for first, last in _equal_stretches(place):
                track = self._counter_track(source, *place[first].tolist())
                part = batch.slice(first, last - first)
                self.sink.add_counter(track, _numpy(part, "time_ns"), _numpy(part, "value"))
            self.counts["counters"] += batch.num_rows
            self._rows.advance(batch.num_rows)

    def _counter_track(self, source: CounterSource, process_idx: int, place_idx: int) -> Track:
        if source.table == TRACE_COUNTER:
            return self.tree.trace(process_idx, place_idx, 0)
        parent = self.tree.core(process_idx, place_idx)
        return self.tree.counter(parent, source.name, source.unit, source.rank)

    def _counted(self, source: SpanSource, batch: pa.RecordBatch) -> Slices:
        slices = _slices(batch, source.category)
        self.counts[source.kind] += len(slices)
        self.flow_starts += _list_items(slices.flow_out)
        self.flow_ends += _list_items(slices.flow_in)
        return slices

    def _add(self, source: SpanSource, runs: Sequence[tuple[_Run, _OpenTrack]], slices: Slices) -> None:
        """Send a batch's slices of all tracks at once."""
        lanes: list[Track] = []
        parts = []
        for run, current in runs:
            chosen = slice(run.first, run.last)
            events = current.events(source.nested, slices.start_ns[chosen], slices.end_ns[chosen])
            self._grow(source, current, int(events.lane.max()) + 1)
            row = np.where(events.row == END_OF_SLICE, END_OF_SLICE, events.row + run.first)
            parts.append((events.time_ns, row, events.lane + np.int32(len(lanes))))
            lanes += current.tracks
        self.sink.add_slices(
            lanes, slices, SliceEvents(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        )

    def _add_layered(self, source: SpanSource, current: _OpenTrack, rows: pa.RecordBatch) -> None:
        """Send slices of one track and those of the modules around them."""
        operations = self._counted(source, rows)
        slices, lanes, module_count = current.modules.add(operations, *_layers(rows))
        self.counts["modules"] += module_count
        self._grow(source, current, int(lanes.max()) + 1)
        events = current.nested_events(slices.start_ns, slices.end_ns, lanes)
        self.sink.add_slices(current.tracks, slices, events)

    def _grow(self, source: SpanSource, current: _OpenTrack, lanes: int) -> None:
        while len(current.tracks) < lanes:
            current.tracks.append(self._track(source, current.key, len(current.tracks)))

    def _finish(self, current: _OpenTrack) -> None:
        for lane, open_ends in current.open_ends.items():
            if len(open_ends):
                end_of_slice = np.full(len(open_ends), END_OF_SLICE)
                events = SliceEvents(
                    np.sort(open_ends), end_of_slice, np.full(len(open_ends), lane, np.int32)
                )
                self.sink.add_slices(current.tracks, Slices.none(), events)

    def _track(self, source: SpanSource, key: tuple[int, int, str], lane: int) -> Track:
        process_idx, place_idx, name = key
        if source.place is Place.TRACE:
            return self.tree.trace(process_idx, place_idx, lane)
        if source.place is Place.THREAD and lane == 0:
            return self.tree.thread(process_idx, place_idx)
        if source.place is Place.THREAD:
            parent = self.tree.thread(process_idx, place_idx)
            return self.tree.lane(
                self.tree.process(process_idx), f"{parent.name} (overlapping)", lane, place_idx
            )
        parent = self.tree.process(process_idx)
        if source.place is Place.CORE:
            parent = self.tree.core(process_idx, place_idx)
        if source.group:
            return self.tree.lane(self.tree.group(parent, source.group, source.rank), name, lane, 0)
        return self.tree.lane(parent, name, lane, ENGINE_RANKS.get(name, source.rank))


def _open_track(source: SpanSource, key: tuple[int, int, str]) -> _OpenTrack:
    lanes = NestedLanes() if source.nested and not source.layered else DepthAssigner()
    return _OpenTrack(key, lanes, ModuleSpans())


def nested_events(start_ns: Ints, end_ns: Ints, open_ends: Ints) -> tuple[Ints, Ints, Ints]:
    """Begins and ends of properly nested spans up to the last begin, and the ends that are still to come.

    Args:
        start_ns: int64, shape (spans,), ascending; outer before inner.
        end_ns: int64, shape (spans,).
        open_ends: int64, shape (open,): ends of spans that began in earlier batches.

    Returns:
        (times, rows or END_OF_SLICE, remaining ends); without spans there is nothing but the ends.
    """
    count, held = len(start_ns), len(open_ends)
    if not count:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), open_ends
    start = np.concatenate([np.full(held, np.iinfo(np.int64).min), start_ns])
    end = np.concatenate([np.sort(open_ends)[::-1], end_ns])
    order = nested_event_order(start, end)[held:]
    is_end = order >= held + count
    span = np.where(is_end, order - held - count, order)
    time = np.where(is_end, end[span], start[span])
    last_begin = int(np.flatnonzero(~is_end)[-1])
    due = last_begin + 1 + int(np.count_nonzero(time[last_begin + 1 :] == time[last_begin]))
    return time[:due], np.where(is_end, END_OF_SLICE, span - held)[:due], time[due:]


def _rows(source: SpanSource, tables: Tables, *, flows: bool) -> Iterator[pa.RecordBatch]:
    """A source's rows in batches, each ordered by track and time, and those of each track by time."""
    profile = tables.profile
    if can_be_read_as_stored(source, profile, tables, flows=flows):
        yield from stored_rows(source, cast(StoredSource, profile), tables, flows=flows)
        return
    queries = (
        span_query(source, tables, window, flows=flows)
        for window in tables.windows(source.table, source.start)
    )
    yield from ahead(batch for query in queries for batch in tables.batches(query))


def _flat_events(start_ns: Ints, end_ns: Ints, lanes: npt.NDArray[np.int32]) -> SliceEvents:
    time = np.column_stack([start_ns, end_ns]).reshape(-1)
    row = np.full(2 * len(start_ns), END_OF_SLICE)
    row[::2] = np.arange(len(start_ns))
    return SliceEvents(time, row, np.repeat(lanes, 2))


def _runs(batch: pa.RecordBatch) -> list[_Run]:
    place = _int_columns(batch, "process_idx", "place_idx")
    track = batch.column("track").dictionary_encode()
    codes = text_codes(track)
    runs = []
    for first, last in _equal_stretches(np.column_stack([place, codes])):
        process_idx, place_idx = place[first].tolist()
        name = track.dictionary[int(codes[first])].as_py() if codes[first] >= 0 else "unknown"
        runs.append(_Run((process_idx, place_idx, name), first, last))
    return runs


def _equal_stretches(keys: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """(first, one past last) of each stretch of equal rows of `keys`, shape (rows, columns)."""
    changes = np.flatnonzero(np.any(keys[1:] != keys[:-1], axis=1)) + 1
    edges = [0, *changes.tolist(), len(keys)]
    return list(pairwise(edges))


def _slices(rows: pa.RecordBatch, category: str | None) -> Slices:
    """The rows as slices; `category` is that of rows which tell none."""
    names = rows.schema.names
    arguments = {name[4:]: _unless_null(rows, name) for name in names if name.startswith("arg_")}
    return Slices(
        start_ns=_numpy(rows, "start_ns"),
        end_ns=_numpy(rows, "end_ns"),
        name=rows.column("name").dictionary_encode(),
        arguments={label: column for label, column in arguments.items() if column is not None},
        source_file=_unless_null(rows, "source_file"),
        source_line=_unless_null(rows, "source_line"),
        flow_out=_unless_null(rows, "flow_out"),
        flow_in=_unless_null(rows, "flow_in"),
        category=_repeated(category, len(rows)) if category else _unless_null(rows, "category"),
        arguments_json=_texts_unless_null(rows, "arguments_json"),
    )


def _layers(rows: pa.RecordBatch) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    backward = rows.column("is_backward").fill_null(False).to_numpy(zero_copy_only=False)
    return rows.column("layer"), backward.astype(np.bool_)


def _unless_null(rows: pa.RecordBatch, name: str) -> pa.Array | None:
    """A column, texts as dictionary; None where it is wholly null."""
    column = rows.column(name)
    if column.null_count == len(column):
        return None
    return column.dictionary_encode() if pa.types.is_string(column.type) else column


def _repeated(text: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), [text])


def _texts_unless_null(rows: pa.RecordBatch, name: str) -> pa.Array | None:
    column = rows.column(name)
    return None if column.null_count == len(column) else column


def _list_items(lists: pa.Array | None) -> int:
    return 0 if lists is None else len(lists.flatten())


def _numpy(rows: pa.RecordBatch, name: str) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = rows.column(name).to_numpy(zero_copy_only=False)
    return values


def _int_columns(batch: pa.RecordBatch, *names: str) -> npt.NDArray[np.int64]:
    return np.column_stack([_numpy(batch, name).astype(np.int64) for name in names])
