"""Perfetto packets of tracks and samples, and those that begin a batch with its interned strings."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from neuron_tools.arrays import Ints
from neuron_tools.profile.export import wire
from neuron_tools.profile.export.timeline import Track, TrackKind
from neuron_tools.profile.export.wire import Cells
from neuron_tools.profile.perfetto_fields import device_text, field_number

TRACE_PACKET = field_number("Trace", "packet")
TIMESTAMP = field_number("TracePacket", "timestamp")
SEQUENCE_ID = field_number("TracePacket", "trusted_packet_sequence_id")
SEQUENCE_FLAGS = field_number("TracePacket", "sequence_flags")
TRACK_EVENT = field_number("TracePacket", "track_event")
INTERNED_DATA = field_number("TracePacket", "interned_data")
EVENT_TYPE = field_number("TrackEvent", "type")
TRACK_UUID = field_number("TrackEvent", "track_uuid")
DOUBLE_COUNTER_VALUE = field_number("TrackEvent", "double_counter_value")
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
    if track.device_idx is not None:
        descriptor.description = device_text(track.device_idx, track.stream)


def state_packet(track: Track, interned: bytes) -> bytes:
    """Starts a batch on a track's sequence: earlier strings are forgotten, `interned` are the new ones."""
    packet = protos.TracePacket(trusted_packet_sequence_id=track.uid, sequence_flags=STATE_CLEARED)
    head: bytes = packet.SerializeToString()
    if interned:
        head += wire.tag(INTERNED_DATA, wire.LENGTH_DELIMITED) + wire.varint_bytes(len(interned)) + interned
    return _framed(head)


def counter_packets(track: Track, time_ns: Ints, values: npt.NDArray[np.float64]) -> bytes:
    """One packet a sample, shape (samples,) each."""
    event = wire.joined(
        _event_head(protos.TrackEvent.TYPE_COUNTER, np.full(len(time_ns), track.uid)),
        wire.fixed64_field(DOUBLE_COUNTER_VALUE, values.astype("<f8")),
    )
    return _packets(track, time_ns, event).pack()


def _event_head(event_type: int, uid: Ints) -> Cells:
    head = wire.tag(EVENT_TYPE, wire.VARINT) + wire.varint_bytes(event_type)
    if len(uid) and bool(np.all(uid == uid[0])):
        content = head + wire.tag(TRACK_UUID, wire.VARINT) + wire.varint_bytes(int(uid[0]))
        return wire.constant(content, len(uid))
    return wire.joined(wire.constant(head, len(uid)), wire.number_field(TRACK_UUID, uid))


def _packets(track: Track, time_ns: Ints, event: Cells) -> Cells:
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
