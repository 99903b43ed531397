"""Perfetto protobuf traces (`.pftrace`): track events with interned data, counters and flows.

Fields are those of https://perfetto.dev/docs/reference/trace-packet-proto. Other data sources (ftrace, heap
profiles) are passed over, and the profile says so.
"""

from __future__ import annotations

import zlib
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from neuron_tools.arrays import Ints
from neuron_tools.profile.importers.head import Head
from neuron_tools.profile.importers.interned import Epochs, InternedTexts
from neuron_tools.profile.importers.open_spans import OpenSpans
from neuron_tools.profile.importers.perfetto_arguments import arguments_json
from neuron_tools.profile.importers.perfetto_clocks import Clocks
from neuron_tools.profile.importers.perfetto_flows import PerfettoFlows
from neuron_tools.profile.importers.perfetto_tracks import PerfettoTracks
from neuron_tools.profile.importers.protobuf_fields import Messages, MessageStream
from neuron_tools.profile.importers.protobuf_scan import split_messages
from neuron_tools.profile.importers.recording import LANE, Clock, Recording
from neuron_tools.profile.importers.spans import stage_spans
from neuron_tools.profile.importers.trace_file import TraceFile
from neuron_tools.profile.perfetto_fields import field_number

NAME = "Perfetto trace"
LARGEST_UNPACKED_BYTES = 64 << 20
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
_LEGACY_TYPES = {ord("B"): BEGIN, ord("E"): END, ord("I"): INSTANT, ord("i"): INSTANT, ord("X"): BEGIN}


PACKET = field_number("Trace", "packet")
(TIMESTAMP, CLOCK, SEQUENCE, FLAGS, EVENT, DESCRIPTOR, INTERNED, SNAPSHOT, DEFAULTS, TREE, COMPRESSED) = (
    field_number("TracePacket", field)
    for field in (
        "timestamp", "timestamp_clock_id", "trusted_packet_sequence_id", "sequence_flags", "track_event",
        "track_descriptor", "interned_data", "clock_snapshot", "trace_packet_defaults", "process_tree",
        "compressed_packets",
    )
)  # fmt: skip
(TYPE, TRACK, EVENT_NAME, NAME_IID, CATEGORIES, CATEGORY_IIDS, ANNOTATIONS, INT_VALUE, DOUBLE_VALUE) = (
    field_number("TrackEvent", field)
    for field in (
        "type", "track_uuid", "name", "name_iid", "categories", "category_iids", "debug_annotations",
        "counter_value", "double_counter_value",
    )
)  # fmt: skip
LOCATION_IID, LEGACY = (
    field_number("TrackEvent", field) for field in ("source_location_iid", "legacy_event")
)
INTERNED_KINDS = {
    kind: field_number("InternedData", kind)
    for kind in (
        "event_names", "event_categories", "debug_annotation_names", "debug_annotation_string_values",
        "source_locations",
    )
}  # fmt: skip
LEGACY_PHASE, LEGACY_DURATION_US = (
    protos.TrackEvent.LegacyEvent.DESCRIPTOR.fields_by_name[field].number
    for field in ("phase", "duration_us")
)
CLEARED = protos.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
LINE_SEPARATOR = "\0"


def recognise(head: Head) -> bool:
    """Whether the file begins with packets of a trace."""
    data = np.frombuffer(head.content, np.uint8)
    if len(data) < 2 or data[0] != PACKET << 3 | 2:
        return False
    room = 4
    starts, stops = np.empty(room, np.int64), np.empty(room, np.int64)
    count, position, is_damaged = split_messages(data, 0, len(data), PACKET, starts, stops)
    if is_damaged and not count:
        return False
    if not count:
        return position == 0 and len(data) >= 1 << 16
    return Messages(data, starts[:count], stops[:count]).damaged < count


def read(file: TraceFile, recording: Recording) -> None:
    """Stages the trace."""
    reader = PerfettoReader(recording)
    stream = MessageStream(file, PACKET)
    for packets in stream.chunks():
        reader.add(packets)
    reader.finish()
    if stream.is_truncated:
        recording.warn("The file ends in the middle or is damaged there; what stands before was imported.")


class PerfettoReader:
    """Turns packets into staged rows."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._tracks = PerfettoTracks(recording)
        self._clocks = Clocks()
        self._epochs = Epochs()
        self._interned = {kind: InternedTexts() for kind in INTERNED_KINDS}
        self._open = OpenSpans()
        self._flows = PerfettoFlows(recording)
        self._totals: dict[int, float] = {}
        self._ids = 0
        self._passed_over: Counter[str] = Counter()

    def add(self, packets: Messages, level: int = 0) -> None:
        """Adds packets in the order of the file."""
        self._passed_over["packets are damaged"] += packets.damaged
        sequence, _ = packets.number(SEQUENCE)
        flags, _ = packets.number(FLAGS)
        epoch = self._epochs.of(sequence, (flags & CLEARED) != 0)
        self._add_descriptions(packets, sequence)
        self._define(packets, epoch)
        time = self._times(packets, sequence)
        row, events = packets.messages(EVENT)
        if len(events):
            self._add_events(events, time[row], epoch[row], sequence[row])
        for kind in self._interned.values():
            kind.forget(self._epochs.current())
        self._add_compressed(packets, level)

    def finish(self) -> None:
        """Closes what is open and places the tracks."""
        left = self._open.left_open(self._recording.last_ns or 0)
        if left is not None:
            self._recording.warn(f"{left.num_rows:,} spans have a begin and no end; they end with the trace.")
            stage_spans(self._recording, left)
        if self._open.unmatched_ends:
            self._passed_over["ends without a begin were left out"] += self._open.unmatched_ends
        for what, count in self._passed_over.items():
            if count:
                self._recording.warn(f"{count:,} {what}.")
        self._flows.finish()
        self._tracks.finish()
        self._recording.clock = Clock(self._clocks.unix_ns)

    def _add_descriptions(self, packets: Messages, sequence: Ints) -> None:
        rows, descriptors = packets.messages(DESCRIPTOR)
        for index, row in enumerate(rows.tolist()):
            self._tracks.add_descriptor(descriptors.content(index), int(sequence[row]))
        rows, trees = packets.messages(TREE)
        for index in range(len(trees)):
            self._tracks.add_process_tree(trees.content(index))
        rows, defaults = packets.messages(DEFAULTS)
        for index, row in enumerate(rows.tolist()):
            self._add_defaults(defaults.content(index), int(sequence[row]))

    def _add_defaults(self, content: bytes, sequence: int) -> None:
        try:
            defaults = protos.TracePacketDefaults.FromString(content)
        except DecodeError:
            return
        if defaults.timestamp_clock_id:
            self._clocks.default[sequence] = int(defaults.timestamp_clock_id)
        if defaults.track_event_defaults.track_uuid:
            self._tracks.set_default(sequence, int(defaults.track_event_defaults.track_uuid))

    def _define(self, packets: Messages, epoch: Ints) -> None:
        row, interned = packets.messages(INTERNED)
        for kind, field in INTERNED_KINDS.items():
            owner, entries = interned.messages(field)
            if len(entries):
                iids, _ = entries.number(1)
                texts = entries.texts(2).fill_null("")
                if kind == "source_locations":
                    lines, _ = entries.number(4)
                    texts = pc.binary_join_element_wise(
                        texts, pa.array(lines).cast(pa.string()), LINE_SEPARATOR
                    )
                self._interned[kind].define(epoch[row[owner]], iids, texts)

    def _times(self, packets: Messages, sequence: Ints) -> Ints:
        time, _ = packets.number(TIMESTAMP)
        clock, _ = packets.number(CLOCK)
        return self._clocks.to_main(np.maximum(time, 0), clock, sequence, packets.messages(SNAPSHOT))

    def _add_compressed(self, packets: Messages, level: int) -> None:
        _, compressed = packets.messages(COMPRESSED)
        for index in range(len(compressed)):
            inflater = zlib.decompressobj()
            try:
                content = inflater.decompress(compressed.content(index), LARGEST_UNPACKED_BYTES)
            except zlib.error:
                self._passed_over["compressed packets are damaged"] += 1
                continue
            if level or inflater.unconsumed_tail:
                self._passed_over["compressed packets are too large"] += 1
                continue
            self._add_unpacked(np.frombuffer(content, np.uint8))

    def _add_unpacked(self, data: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        room = len(data) // 2 + 1
        starts, stops = np.empty(room, np.int64), np.empty(room, np.int64)
        count, _, _ = split_messages(data, 0, len(data), PACKET, starts, stops)
        if count:
            self.add(Messages(data, starts[:count], stops[:count]), level=1)

    def _add_events(self, events: Messages, time: Ints, epoch: Ints, sequence: Ints) -> None:
        kind, _ = events.number(TYPE)
        kind = self._with_legacy(events, kind)
        track = self._tracks_of(events, sequence)
        counters = np.flatnonzero(kind == COUNTER)
        if len(counters):
            self._add_counters(events, counters, track[counters], time[counters])
        spans = np.flatnonzero((kind == BEGIN) | (kind == END) | (kind == INSTANT))
        self._passed_over["events of other kinds were left out"] += len(kind) - len(counters) - len(spans)
        if len(spans):
            self._add_spans(events, spans, kind[spans], track[spans], time[spans], epoch)

    def _with_legacy(self, events: Messages, kind: Ints) -> Ints:
        row, legacy = events.messages(LEGACY)
        if not len(legacy):
            return kind
        phase, _ = legacy.number(LEGACY_PHASE)
        kind = kind.copy()
        for letter, meaning in _LEGACY_TYPES.items():
            chosen = row[(phase == letter) & (kind[row] == 0)]
            kind[chosen] = meaning
        return kind

    def _tracks_of(self, events: Messages, sequence: Ints) -> Ints:
        track, has_track = events.number(TRACK)
        if not has_track.all():
            for own in np.unique(sequence[~has_track]).tolist():
                track[~has_track & (sequence == own)] = np.array(
                    self._tracks.default_track(own), np.uint64
                ).astype(np.int64)
        return track

    def _lanes(self, track: Ints, *, is_counter: bool) -> Ints:
        values, which = np.unique(track, return_inverse=True)
        lanes = [self._tracks.lane(uuid & ((1 << 64) - 1), is_counter=is_counter) for uuid in values.tolist()]
        return np.array(lanes, np.int64)[which.reshape(-1)]

    def _add_counters(self, events: Messages, rows: Ints, track: Ints, time: Ints) -> None:
        whole, has_whole = events.number(INT_VALUE)
        exact, has_exact = events.double(DOUBLE_VALUE)
        value = np.where(has_exact, exact, whole.astype(np.float64))[rows]
        for uuid in np.unique(track).tolist():
            factor, is_difference = self._tracks.counter(uuid & ((1 << 64) - 1))
            chosen = track == uuid
            if is_difference:
                value[chosen] = self._totals.get(uuid, 0.0) + np.cumsum(value[chosen])
                self._totals[uuid] = float(value[chosen][-1])
            value[chosen] *= factor
        kept = (has_whole | has_exact)[rows] & np.isfinite(value)
        lane = self._lanes(track, is_counter=True)
        self._recording.append_samples(lane[kept], time[kept], value[kept])

    def _add_spans(
        self,
        events: Messages,
        rows: Ints,
        kind: Ints,
        track: Ints,
        time: Ints,
        epoch: Ints,
    ) -> None:
        lane = self._lanes(track, is_counter=False)
        is_begin = kind != END
        ids = self._ids + np.cumsum(is_begin) - 1
        self._ids += int(np.count_nonzero(is_begin))
        table = pa.table(
            self._columns(events, rows, epoch) | {LANE: lane.astype(np.int32), "start_ts": time, "id": ids}
        )
        self._flows.add(events, rows, ids, is_begin, time)
        is_instant = kind == INSTANT
        duration = self._legacy_durations(events)[rows]
        is_whole = is_instant | (duration >= 0)
        if is_whole.any():
            whole = table.filter(pa.array(is_whole))
            ends = time[is_whole] + np.maximum(duration[is_whole], 0)
            stage_spans(self._recording, whole.append_column("end_ts", pa.array(ends)))
        paired = np.flatnonzero(~is_whole)
        if len(paired):
            closed = self._open.add(table.take(pa.array(paired)), lane[paired], is_begin[paired])
            if closed is not None:
                stage_spans(self._recording, closed)

    def _legacy_durations(self, events: Messages) -> Ints:
        """Durations of complete events, nanoseconds; -1 for events that are none."""
        durations = np.full(len(events), -1, np.int64)
        row, legacy = events.messages(LEGACY)
        if len(legacy):
            phase, _ = legacy.number(LEGACY_PHASE)
            microseconds, _ = legacy.number(LEGACY_DURATION_US)
            is_complete = phase == ord("X")
            durations[row[is_complete]] = np.clip(microseconds[is_complete], 0, 1 << 50) * 1000
        return durations

    def _columns(self, events: Messages, rows: Ints, epoch: Ints) -> dict[str, Any]:
        name_iid, _ = events.number(NAME_IID)
        names = pc.coalesce(
            self._interned["event_names"].look_up(epoch, name_iid), events.texts(EVENT_NAME), ""
        )
        owner, annotations = events.messages(ANNOTATIONS)
        arguments = arguments_json(
            len(events),
            owner,
            annotations,
            epoch[owner],
            self._interned["debug_annotation_names"],
            self._interned["debug_annotation_string_values"],
        )
        files, lines = self._locations(events, epoch)
        columns = {
            "name": names.dictionary_encode(),
            "category": self._categories(events, epoch).dictionary_encode(),
            "source_file": files.dictionary_encode(),
            "source_line": lines,
            "arguments_json": arguments,
        }
        if len(rows) == len(events):
            return columns
        return {name: column.take(pa.array(rows)) for name, column in columns.items()}

    def _categories(self, events: Messages, epoch: Ints) -> pa.Array:
        owner, iids = events.numbers(CATEGORY_IIDS)
        last = np.zeros(len(events), np.int64)
        last[owner] = iids
        return pc.coalesce(events.texts(CATEGORIES), self._interned["event_categories"].look_up(epoch, last))

    def _locations(self, events: Messages, epoch: Ints) -> tuple[pa.Array, pa.Array]:
        iids, _ = events.number(LOCATION_IID)
        texts = self._interned["source_locations"].look_up(epoch, iids)
        parts = pc.split_pattern(texts, LINE_SEPARATOR, max_splits=1, reverse=True)
        if texts.null_count == len(texts):
            return pa.nulls(len(events), pa.string()), pa.nulls(len(events), pa.int32())
        lines = pc.list_element(parts.fill_null(["", "0"]), 1).cast(pa.int64())
        usable = pc.and_(pc.greater(lines, 0), pc.less(lines, 1 << 31))
        files = pc.list_element(parts.fill_null(["", "0"]), 0)
        known = pc.and_(pc.is_valid(texts), pc.not_equal(files, ""))
        return (
            pc.if_else(known, files, pa.scalar(None, pa.string())),
            pc.if_else(pc.and_(known, usable), lines, pa.scalar(None, pa.int64())).cast(pa.int32()),
        )
