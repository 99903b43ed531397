"""Chrome trace events, in whatever file they come: complete, begin and end, async, instant, counter, flow.

The event format is that of the "Trace Event Format" document of the Chromium project; torch.profiler and
JAX write it with additions, which their own modules add as a `Dialect`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.arrays import Bools, Ints
from neuron_tools.profile.importers.ahead import ahead
from neuron_tools.profile.importers.chrome_flows import FlowEvents
from neuron_tools.profile.importers.chrome_layout import ChromeLayout
from neuron_tools.profile.importers.dialect import Dialect
from neuron_tools.profile.importers.json_decode import LARGEST_TIME
from neuron_tools.profile.importers.json_document import JsonDocument
from neuron_tools.profile.importers.json_rows import JsonRows, KeySet
from neuron_tools.profile.importers.names import places, source_place
from neuron_tools.profile.importers.open_spans import OpenSpans
from neuron_tools.profile.importers.recording import LANE, Recording
from neuron_tools.profile.importers.spans import stage_spans
from neuron_tools.profile.importers.trace_file import TraceFile

EVENT_KEYS = KeySet(
    ["ph", "name", "cat", "pid", "tid", "ts", "dur", "args", "id", "id2", "scope", "bp", "tts", "tdur"]
)
TAIL_SOURCE = r',?"source":"(?:[^"\\]|\\.)*"\}$'
MICROSECONDS = 3
"""Powers of ten from the format's unit of time to nanoseconds."""

_COMPLETE = (ord("X"),)
_PAIRS = (ord("B"), ord("E"))
_ASYNC_BEGINS, _ASYNC_ENDS = (ord("b"), ord("S")), (ord("e"), ord("F"))
_ASYNC_INSTANTS = (ord("n"), ord("T"), ord("p"))
_INSTANTS = tuple(ord(phase) for phase in "iIRPNODvVc")
"""Instants and marks, samples, lives and snapshots of objects, memory dumps, marks that join clocks."""
_COUNTERS, _METADATA = (ord("C"),), (ord("M"),)
_FLOWS = (ord("s"), ord("t"), ord("f"))
_KNOWN = (
    *_COMPLETE, *_PAIRS, *_ASYNC_BEGINS, *_ASYNC_ENDS, *_ASYNC_INSTANTS, *_INSTANTS,
    *_COUNTERS, *_METADATA, *_FLOWS,
)  # fmt: skip


def read_events(file: TraceFile, recording: Recording, dialect: Dialect) -> None:
    """Stages a document of trace events, with what its producer adds to the format."""
    document = JsonDocument(file)
    ChromeReader(recording, dialect).read(document)
    recording.warn_all(document.damage.sentences())


class ChromeReader:
    """Turns trace events into staged rows.

    Args:
        recording: Receives the rows.
        dialect: What the producer of the file adds to the format.
    """

    def __init__(self, recording: Recording, dialect: Dialect) -> None:
        self._recording = recording
        self._dialect = dialect
        self._argument_keys = KeySet(["source", *dialect.argument_keys])
        self._layout = ChromeLayout(recording, dialect)
        self._thread_spans = OpenSpans()
        self._async_spans = OpenSpans()
        self._flows = FlowEvents(recording)
        self._ids = 0
        self._skipped: dict[str, int] = {}

    def read(self, document: JsonDocument) -> None:
        """Reads a whole document, in the array form or the object form."""
        for key in document.members():
            if key in ("", "traceEvents") and document.is_list():
                for rows in ahead(self._events(document)):
                    self.add(rows)
            else:
                self._dialect.add_header(key, document.value())
        self.finish()

    def _events(self, document: JsonDocument) -> Iterator[JsonRows]:
        """Chunks of events; their arguments, which take longest, are read before they are asked for."""
        for rows in document.objects(EVENT_KEYS):
            yield rows.prepare_json("args") if self._recording.with_arguments else rows

    def add(self, rows: JsonRows) -> None:
        """Adds one chunk of events, in the order of the file."""
        phase = rows.first_bytes("ph")
        time_ns, has_time = rows.scaled("ts", MICROSECONDS)
        is_metadata = phase == _METADATA[0]
        known = np.isin(phase, _KNOWN)
        self._count("of an unknown kind", ~known & rows.has("ph"))
        self._count("without a time", known & ~is_metadata & ~has_time)
        if is_metadata.any():
            self._layout.add_metadata(rows.take(is_metadata))
        usable = has_time & known & ~is_metadata
        if usable.any():
            everything = bool(usable.all())
            self._add_timed(
                rows if everything else rows.take(usable),
                phase if everything else phase[usable],
                time_ns if everything else time_ns[usable],
            )

    def finish(self) -> None:
        """Closes what is still open and places the tracks."""
        for spans, what in ((self._thread_spans, "begin"), (self._async_spans, "asynchronous begin")):
            left = spans.left_open(self._recording.last_ns or 0)
            if left is not None:
                self._recording.warn(
                    f"{left.num_rows:,} spans have a {what} and no end; they end with the trace."
                )
                self._stage(left)
            if spans.unmatched_ends:
                self._recording.warn(
                    f"{spans.unmatched_ends:,} {what}s are missing; their ends were left out."
                )
        for what, count in self._skipped.items():
            self._recording.warn(f"{count:,} events {what} were left out.")
        self._flows.finish()
        self._dialect.finish(self._recording)
        self._layout.finish()

    def _count(self, what: str, which: Bools) -> None:
        count = int(np.count_nonzero(which))
        if count:
            self._skipped[what] = self._skipped.get(what, 0) + count

    def _add_timed(self, rows: JsonRows, phase: npt.NDArray[np.uint8], time_ns: Ints) -> None:
        lane = self._thread_lanes(rows, phase)
        order = np.arange(len(rows))
        span_of_row = np.full(len(rows), -1, np.int64)
        alone = np.isin(phase, (*_COMPLETE, *_INSTANTS))
        if alone.any():
            chosen = order if alone.all() else np.flatnonzero(alone)
            self._add_complete(rows.take(chosen), phase[chosen], time_ns[chosen], lane[chosen])
            span_of_row[chosen] = np.arange(self._ids - len(chosen), self._ids)
        pairs = np.flatnonzero(np.isin(phase, _PAIRS))
        if len(pairs):
            self._add_pairs(rows.take(pairs), phase[pairs] == ord("B"), time_ns[pairs], lane[pairs])
        self._add_async(rows, phase, time_ns)
        counters = np.flatnonzero(phase == _COUNTERS[0])
        if len(counters):
            self._add_counters(rows.take(counters), time_ns[counters])
        flows = np.flatnonzero(np.isin(phase, _FLOWS))
        if len(flows):
            is_span = span_of_row >= 0
            before = np.maximum.accumulate(np.where(is_span, order, -1))[flows]
            fits = (before >= 0) & (lane[before] == lane[flows]) & (time_ns[before] == time_ns[flows])
            known_span = np.where(fits, span_of_row[before], -1)
            self._flows.add(rows.take(flows), phase[flows], time_ns[flows], lane[flows], known_span)

    def _thread_lanes(self, rows: JsonRows, phase: npt.NDArray[np.uint8]) -> Ints:
        """Track of each event that stands on a thread; -1 for the others."""
        on_thread = np.isin(phase, (*_COMPLETE, *_INSTANTS, *_PAIRS, *_FLOWS))
        if on_thread.all():
            return self._layout.thread_lanes(rows)
        lane = np.full(len(rows), -1, np.int64)
        chosen = np.flatnonzero(on_thread)
        lane[chosen] = self._layout.thread_lanes(rows.take(chosen))
        return lane

    def _add_complete(self, rows: JsonRows, phase: npt.NDArray[np.uint8], time_ns: Ints, lane: Ints) -> None:
        duration, known = rows.scaled("dur", MICROSECONDS)
        duration = np.where(known & (phase == _COMPLETE[0]), duration, 0)
        inside = rows.objects("args", self._argument_keys)
        columns = self._span_columns(rows, inside, lane, time_ns)
        columns["end_ts"] = pa.array(np.minimum(time_ns + duration, LARGEST_TIME))
        self._dialect.add_instants(rows, inside, time_ns, self._layout, self._recording)
        self._stage(pa.table(columns))

    def _add_pairs(self, rows: JsonRows, is_begin: Bools, time_ns: Ints, lane: Ints) -> None:
        inside = rows.objects("args", self._argument_keys)
        table = pa.table(self._span_columns(rows, inside, lane, time_ns))
        closed = self._thread_spans.add(table, lane, is_begin)
        self._stage_closed(closed)

    def _add_async(self, rows: JsonRows, phase: npt.NDArray[np.uint8], time_ns: Ints) -> None:
        chosen = np.flatnonzero(np.isin(phase, (*_ASYNC_BEGINS, *_ASYNC_ENDS, *_ASYNC_INSTANTS)))
        if not len(chosen):
            return
        rows, phase, time_ns = rows.take(chosen), phase[chosen], time_ns[chosen]
        lane = self._layout.async_lanes(rows)
        instant = np.isin(phase, _ASYNC_INSTANTS)
        inside = rows.objects("args", self._argument_keys)
        table = pa.table(self._span_columns(rows, inside, lane, time_ns))
        if instant.any():
            alone = table.filter(pa.array(instant))
            self._stage(alone.append_column("end_ts", alone["start_ts"]))
        paired = ~instant
        if paired.any():
            keys = self._layout.async_keys(rows)[paired]
            begins = np.isin(phase, _ASYNC_BEGINS)[paired]
            self._stage_closed(self._async_spans.add(table.filter(pa.array(paired)), keys, begins))

    def _add_counters(self, rows: JsonRows, time_ns: Ints) -> None:
        members = rows.members("args")
        values = members.numbers()
        kept = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        if not len(kept):
            return
        row = members.row[kept]
        series = members.keys().take(pa.array(kept))
        lane = self._layout.counter_lanes(rows.take(row), series)
        finite = values.take(pa.array(kept)).to_numpy(zero_copy_only=False)
        ok = np.isfinite(finite)
        self._recording.append_samples(lane[ok], time_ns[row][ok], finite[ok])

    def _span_columns(self, rows: JsonRows, inside: JsonRows, lane: Ints, time_ns: Ints) -> dict[str, Any]:
        """Columns of spans but their ends: lane, start_ts, name, category, source, correlation, arguments."""
        arguments = self._arguments(rows)
        extra = self._dialect.columns(rows, inside)
        if "source_file" not in extra and inside.has("source").any():
            arguments, place = _with_source_apart(inside.texts("source"), arguments)
            extra = {**extra, **place}
        empty = pc.equal(arguments, "{}")
        return {
            LANE: pa.array(lane, pa.int32()),
            "start_ts": pa.array(time_ns),
            "name": _filled(rows.texts("name")),
            "category": rows.texts("cat"),
            **extra,
            "arguments_json": pc.if_else(empty, pa.scalar(None, pa.string()), arguments),
        }

    def _arguments(self, rows: JsonRows) -> pa.StringArray:
        """JSON objects; a value that is none becomes the only member of one. Nulls if they are not wanted."""
        if not self._recording.with_arguments:
            return pa.nulls(len(rows), pa.string())
        arguments = rows.json("args")
        lost = int(rows.has("args").sum()) - len(arguments) + arguments.null_count
        self._recording.warn("Arguments that are no valid JSON were left out.", count=lost)
        is_object = pc.starts_with(arguments, "{")
        if not pc.all(is_object, skip_nulls=True).as_py():
            wrapped = pc.binary_join_element_wise('{"args":', arguments, "}", "")
            arguments = pc.if_else(is_object, arguments, wrapped)
        return arguments

    def _stage_closed(self, closed: pa.Table | None) -> None:
        if closed is not None:
            self._stage(closed)

    def _stage(self, spans: pa.Table) -> None:
        ids = np.arange(self._ids, self._ids + spans.num_rows)
        self._ids += spans.num_rows
        stage_spans(self._recording, spans.append_column("id", pa.array(ids)))


def _filled(names: pa.DictionaryArray) -> pa.DictionaryArray:
    if not names.null_count:
        return names
    return names.cast(pa.string()).fill_null("").dictionary_encode()


def _with_source_apart(
    sources: pa.DictionaryArray, arguments: pa.StringArray
) -> tuple[pa.StringArray, dict[str, Any]]:
    """Arguments without their last member `source`, which our own exports write, and its file and line."""
    found = places(sources, source_place) if sources.null_count < len(sources) else None
    if found is None:
        return arguments, {}
    stripped = pc.replace_substring_regex(arguments, TAIL_SOURCE, "}")
    is_apart = pc.and_(pc.is_valid(found[1]), pc.not_equal(stripped, arguments))
    none = pa.scalar(None, pa.string())
    files = pc.if_else(is_apart, found[0].cast(pa.string()), none).dictionary_encode()
    lines = pc.if_else(is_apart, found[1], pa.scalar(None, pa.int32()))
    return pc.if_else(is_apart, stripped, arguments), {"source_file": files, "source_line": lines}
