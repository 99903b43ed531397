"""Perfetto packets from columns: track descriptors, interned strings, slice begins and ends, samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from neuron_tools.profile.export import wire
from neuron_tools.profile.export.interning import intern_locations, intern_texts
from neuron_tools.profile.export.json_annotations import JsonAnnotations
from neuron_tools.profile.export.timeline import (
    TEXTS,
    Int64Array,
    SliceEvents,
    Slices,
    Track,
    TrackKind,
)
from neuron_tools.profile.export.wire import Cells

CHUNK_EVENTS = 1 << 16
LARGEST_CHUNK_BYTES = 1 << 25


def _number(message: str, field: str) -> int:
    number: int = getattr(protos, message).DESCRIPTOR.fields_by_name[field].number
    return number


TRACE_PACKET = _number("Trace", "packet")
TIMESTAMP = _number("TracePacket", "timestamp")
SEQUENCE_ID = _number("TracePacket", "trusted_packet_sequence_id")
SEQUENCE_FLAGS = _number("TracePacket", "sequence_flags")
TRACK_EVENT = _number("TracePacket", "track_event")
TRACK_DESCRIPTOR = _number("TracePacket", "track_descriptor")
INTERNED_DATA = _number("TracePacket", "interned_data")
EVENT_TYPE = _number("TrackEvent", "type")
TRACK_UUID = _number("TrackEvent", "track_uuid")
NAME_IID = _number("TrackEvent", "name_iid")
CATEGORY_IIDS = _number("TrackEvent", "category_iids")
SOURCE_LOCATION_IID = _number("TrackEvent", "source_location_iid")
DEBUG_ANNOTATIONS = _number("TrackEvent", "debug_annotations")
FLOW_IDS = _number("TrackEvent", "flow_ids")
DOUBLE_COUNTER_VALUE = _number("TrackEvent", "double_counter_value")
ANNOTATION_NAME_IID = _number("DebugAnnotation", "name_iid")
ANNOTATION_INT = _number("DebugAnnotation", "int_value")
ANNOTATION_DOUBLE = _number("DebugAnnotation", "double_value")
ANNOTATION_TEXT_IID = _number("DebugAnnotation", "string_value_iid")
STATE_CLEARED = protos.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
NEEDS_STATE = protos.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE


def track_packet(track: Track) -> bytes:
    """The descriptor of a track, as a whole packet."""
    packet = protos.TracePacket(trusted_packet_sequence_id=track.uid)
    descriptor = packet.track_descriptor
    descriptor.uuid = track.uid
    descriptor.sibling_order_rank = track.rank
    by_name = track.kind is TrackKind.GROUP
    ordering = protos.TrackDescriptor.LEXICOGRAPHIC if by_name else protos.TrackDescriptor.EXPLICIT
    descriptor.child_ordering = ordering
    if track.parent is not None:
        descriptor.parent_uuid = track.parent.uid
    _describe(descriptor, track)
    return _framed(packet.SerializeToString())


def _describe(descriptor: protos.TrackDescriptor, track: Track) -> None:
    if track.kind is TrackKind.PROCESS:
        descriptor.process.pid = track.process_id
        descriptor.process.process_name = track.name
    elif track.kind is TrackKind.THREAD:
        descriptor.thread.pid = track.process_id
        descriptor.thread.tid = track.thread_id
        descriptor.thread.thread_name = track.name
    else:
        descriptor.name = track.name
    if track.kind is TrackKind.COUNTER:
        descriptor.counter.unit_name = track.unit


def state_packet(track: Track, interned: bytes) -> bytes:
    """Starts a batch on a track's sequence: earlier strings are forgotten, `interned` are the new ones."""
    packet = protos.TracePacket(trusted_packet_sequence_id=track.uid, sequence_flags=STATE_CLEARED)
    head: bytes = packet.SerializeToString()
    if interned:
        head += wire.tag(INTERNED_DATA, wire.LENGTH_DELIMITED) + wire.varint_bytes(len(interned)) + interned
    return _framed(head)


def counter_packets(track: Track, time_ns: Int64Array, values: npt.NDArray[np.float64]) -> bytes:
    """One packet a sample, shape (samples,) each."""
    event = wire.joined(
        _event_head(protos.TrackEvent.TYPE_COUNTER, np.full(len(time_ns), track.uid)),
        wire.fixed64_field(DOUBLE_COUNTER_VALUE, values.astype("<f8")),
    )
    return _packets(track, time_ns, event).pack()


def slice_packets(lanes: Sequence[Track], slices: Slices, events: SliceEvents) -> Iterator[bytes]:
    """One batch of a track: its strings, then begins and ends, each lane's in order of time."""
    columns = _EventColumns.of(slices)
    yield state_packet(lanes[0], columns.interned)
    uids = np.array([lane.uid for lane in lanes])[events.lane]
    make = _alternating if events.alternates else _mixed
    for first in range(0, len(events.row), CHUNK_EVENTS):
        chosen = slice(first, first + CHUNK_EVENTS)
        yield from make(lanes[0], columns, events.time_ns[chosen], events.row[chosen], uids[chosen])


def _alternating(
    track: Track, columns: _EventColumns, time_ns: Int64Array, row: Int64Array, uid: Int64Array
) -> Iterator[bytes]:
    """Packets of events of which each second one ends what the one before it began."""
    if columns.wide_bytes(row[::2]) > LARGEST_CHUNK_BYTES and len(row) > 2:
        middle = len(row) // 4 * 2
        for part in (slice(0, middle), slice(middle, None)):
            yield from _alternating(track, columns, time_ns[part], row[part], uid[part])
        return
    begin = _packets(track, time_ns[::2], columns.begin_events(row[::2], uid[::2]))
    end = _packets(track, time_ns[1::2], _end_events(uid[1::2]))
    yield wire.joined(begin, end).pack()


def _mixed(
    track: Track, columns: _EventColumns, time_ns: Int64Array, row: Int64Array, uid: Int64Array
) -> Iterator[bytes]:
    """Packets of events in any order."""
    begins = row >= 0
    if columns.wide_bytes(row[begins]) > LARGEST_CHUNK_BYTES and len(row) > 1:
        middle = len(row) // 2
        for part in (slice(0, middle), slice(middle, None)):
            yield from _mixed(track, columns, time_ns[part], row[part], uid[part])
        return
    begin = _packets(track, time_ns[begins], columns.begin_events(row[begins], uid[begins]))
    end = _packets(track, time_ns[~begins], _end_events(uid[~begins]))
    position = np.where(begins, np.cumsum(begins) - 1, np.count_nonzero(begins) + np.cumsum(~begins) - 1)
    yield wire.interleaved(begin, end, position)


@dataclass(frozen=True, slots=True)
class _EventColumns:
    """A batch's begin events in columns: numbers of interned strings, numbers, flow lists."""

    interned: bytes
    name_iid: Int64Array
    location_iid: Int64Array | None
    arguments: tuple[tuple[int, Cells, npt.NDArray[np.bool_]], ...]
    flows: tuple[tuple[Int64Array, npt.NDArray[np.uint64]], ...]
    category_iid: Int64Array | None = None
    further: JsonAnnotations | None = None

    @classmethod
    def of(cls, slices: Slices) -> _EventColumns:
        names = intern_texts("event_names", slices.name)
        labels = intern_texts("debug_annotation_names", pa.array(list(slices.arguments), TEXTS))
        locations = intern_locations(slices)
        text_definitions, text_iids, next_iid = _intern_argument_texts(slices)
        categories = None if slices.category is None else intern_texts("event_categories", slices.category)
        further = None
        if slices.arguments_json is not None:
            further = JsonAnnotations.of(slices.arguments_json, len(slices.arguments) + 1, next_iid)
        arguments = tuple(
            _argument(label_iid, column, text_iids)
            for label_iid, column in zip(labels.iid.tolist(), slices.arguments.items(), strict=True)
        )
        definitions = [part.message for part in (names, labels, locations, categories) if part is not None]
        if further is not None:
            definitions.append(further.interned)
        return cls(
            interned=b"".join([*definitions, text_definitions]),
            name_iid=names.iid,
            location_iid=None if locations is None else locations.iid,
            arguments=arguments,
            flows=tuple(_flow_lists(column) for column in (slices.flow_out, slices.flow_in) if column),
            category_iid=None if categories is None else categories.iid,
            further=further,
        )

    def wide_bytes(self, rows: Int64Array) -> int:
        """Bytes of the rectangle that the rows' flow lists and JSON arguments need."""
        if not len(rows):
            return 0
        widest = [10 * int(np.diff(offsets)[rows].max()) for offsets, _ in self.flows]
        if self.further is not None:
            widest.append(int(self.further.widths(rows).max()))
        return len(rows) * sum(widest)

    def begin_events(self, rows: Int64Array, uid: Int64Array) -> Cells:
        """TrackEvent messages of the given rows, on the tracks of the given numbers."""
        pieces = [
            _event_head(protos.TrackEvent.TYPE_SLICE_BEGIN, uid),
            wire.number_field(NAME_IID, self.name_iid[rows]),
        ]
        if self.location_iid is not None:
            iids = self.location_iid[rows]
            pieces.append(wire.number_field(SOURCE_LOCATION_IID, iids).where(iids > 0))
        if self.category_iid is not None:
            iids = self.category_iid[rows]
            pieces.append(wire.number_field(CATEGORY_IIDS, iids).where(iids > 0))
        for label_iid, value, present in self.arguments:
            head = wire.tag(ANNOTATION_NAME_IID, wire.VARINT) + wire.varint_bytes(label_iid)
            annotation = wire.joined(wire.constant(head, len(rows)), value.take(rows))
            pieces.append(wire.message_field(DEBUG_ANNOTATIONS, annotation).where(present[rows]))
        if self.further is not None:
            pieces.append(self.further.cells(rows))
        for offsets, values in self.flows:
            pieces.append(_flow_field(offsets, values, rows))
        return wire.joined(*pieces)


def _intern_argument_texts(slices: Slices) -> tuple[bytes, dict[str, Int64Array], int]:
    """Definitions of the texts of textual arguments, each argument's numbers by label, the next number."""
    definitions, iids, first = b"", {}, 1
    for label, column in slices.arguments.items():
        if pa.types.is_dictionary(column.type):
            interned = intern_texts("debug_annotation_string_values", column, first)
            definitions += interned.message
            iids[label] = interned.iid
            first += interned.count
    return definitions, iids, first


def _argument(
    label_iid: int, column: tuple[str, pa.Array], text_iids: dict[str, Int64Array]
) -> tuple[int, Cells, npt.NDArray[np.bool_]]:
    """A debug annotation's value field, and where there is one."""
    label, values = column
    present = values.is_valid().to_numpy(zero_copy_only=False)
    if label in text_iids:
        return label_iid, wire.number_field(ANNOTATION_TEXT_IID, text_iids[label]), present
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(values.type):
        return label_iid, wire.fixed64_field(ANNOTATION_DOUBLE, numbers.astype("<f8")), present
    return label_iid, wire.number_field(ANNOTATION_INT, numbers), present


def _flow_lists(column: pa.Array) -> tuple[Int64Array, npt.NDArray[np.uint64]]:
    """Offsets (rows + 1) and values of a list column; a null is an empty list."""
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    values = column.flatten().cast(pa.uint64()).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), values


def _flow_field(offsets: Int64Array, values: npt.NDArray[np.uint64], rows: Int64Array) -> Cells:
    lengths = np.diff(offsets)[rows]
    own = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    first = np.repeat(offsets[:-1][rows] - own[:-1], lengths)
    return wire.repeated_fixed64_field(FLOW_IDS, own, values[first + np.arange(own[-1])])


def _event_head(event_type: int, uid: Int64Array) -> Cells:
    head = wire.tag(EVENT_TYPE, wire.VARINT) + wire.varint_bytes(event_type)
    if len(uid) and bool(np.all(uid == uid[0])):
        content = head + wire.tag(TRACK_UUID, wire.VARINT) + wire.varint_bytes(int(uid[0]))
        return wire.constant(content, len(uid))
    return wire.joined(wire.constant(head, len(uid)), wire.number_field(TRACK_UUID, uid))


def _end_events(uid: Int64Array) -> Cells:
    return _event_head(protos.TrackEvent.TYPE_SLICE_END, uid)


def _packets(track: Track, time_ns: Int64Array, event: Cells) -> Cells:
    """Whole packets around track events."""
    sequence = (
        wire.tag(SEQUENCE_ID, wire.VARINT)
        + wire.varint_bytes(track.uid)
        + wire.tag(SEQUENCE_FLAGS, wire.VARINT)
        + wire.varint_bytes(NEEDS_STATE)
    )
    packet = wire.joined(
        wire.number_field(TIMESTAMP, time_ns),
        wire.constant(sequence, len(time_ns)),
        wire.message_field(TRACK_EVENT, event),
    )
    return wire.message_field(TRACE_PACKET, packet)


def _framed(content: bytes) -> bytes:
    return wire.tag(TRACE_PACKET, wire.LENGTH_DELIMITED) + wire.varint_bytes(len(content)) + content
