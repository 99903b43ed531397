"""Encodes Perfetto packets of slice begins and ends, compiled: one pass over the events, no list of pieces.

Field numbers: https://perfetto.dev/docs/reference/trace-packet-proto. Fields below 16 have keys of one byte,
those used here above it keys of two.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from numba import types

from neuron_tools.compiled import compiled, compiled_as, compiled_part, copy_bytes

Ints: TypeAlias = "npt.NDArray[np.int64]"
Unsigned: TypeAlias = "npt.NDArray[np.uint64]"
Bytes: TypeAlias = "npt.NDArray[np.uint8]"
Flags: TypeAlias = "npt.NDArray[np.bool_]"

PACKET_KEY, TIMESTAMP_KEY, TRACK_EVENT_KEY = 1 << 3 | 2, 8 << 3, 11 << 3 | 2
TYPE_KEY, TRACK_KEY, NAME_KEY, CATEGORY_KEY, ANNOTATION_KEY = 9 << 3, 11 << 3, 10 << 3, 3 << 3, 4 << 3 | 2
LOCATION_KEY = 34 << 3
FLOW_KEY = 47 << 3 | 1
BEGIN, END = 1, 2
EVENT_BYTES, ANNOTATION_BYTES, FLOW_BYTES = 112, 24, 10
"""At most so many: of an event without what follows, of an annotation, of a flow."""

_INTS, _BYTES, _FLAGS = types.int64[::1], types.uint8[::1], types.boolean[:, ::1]
_READ_BYTES = types.Array(types.uint8, 1, "C", readonly=True)


@compiled_part
def put_varint(out: Bytes, at: int, value: int) -> int:
    """Write an unsigned number at a place; the place behind it."""
    rest = np.uint64(value)
    while rest > np.uint64(0x7F):
        out[at] = np.uint8(rest & np.uint64(0x7F)) | np.uint8(0x80)
        rest >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(rest)
    return at + 1


@compiled
def varint_bytes(value: int) -> int:
    """How many bytes `put_varint` takes."""
    length, rest = 1, np.uint64(value) >> np.uint64(7)
    while rest > np.uint64(0):
        length += 1
        rest >>= np.uint64(7)
    return length


@compiled_part
def put_fixed64(out: Bytes, at: int, value: int) -> int:
    """Write eight bytes, lowest first; the place behind them."""
    rest = np.uint64(value)
    for place in range(8):
        out[at + place] = np.uint8(rest & np.uint64(0xFF))
        rest >>= np.uint64(8)
    return at + 8


@compiled_part
def put_bytes(out: Bytes, at: int, data: Bytes, begin: int, end: int) -> int:
    """Write a part of some bytes; the place behind it."""
    copy_bytes(out, at, data, begin, end - begin)
    return at + end - begin


@compiled_part
def put_names(event: Bytes, at: int, iids: tuple[Ints, Ints, Ints], own: int) -> int:
    """Write the ids of a row's name, source location and category, where it has them."""
    for which in range(3):
        if which > 0 and len(iids[which]) == 0:
            continue
        iid = iids[which][own]
        if iid == 0:
            continue
        key = (NAME_KEY, LOCATION_KEY, CATEGORY_KEY)[which]
        at = put_varint(event, put_varint(event, at, key), iid)
    return at


@compiled_part
def put_annotations(
    event: Bytes, at: int, heads: Bytes, head_bytes: Ints, values: Ints, present: Flags, own: int
) -> int:
    """Write the annotations that a row has, each with its length before it."""
    for argument in range(len(head_bytes)):
        if not present[argument, own]:
            continue
        event[at] = ANNOTATION_KEY
        begin = at + 2
        at = put_bytes(event, begin, heads[argument], 0, abs(head_bytes[argument]))
        if head_bytes[argument] < 0:
            at = put_fixed64(event, at, values[argument, own])
        else:
            at = put_varint(event, at, values[argument, own])
        event[begin - 1] = np.uint8(at - begin)
    return at


@compiled_part
def put_flows(
    event: Bytes, at: int, flow_offsets: tuple[Ints, Ints], flows: tuple[Unsigned, Unsigned], own: int
) -> int:
    """Write the numbers of a row's flows, both kinds."""
    for side in range(2):
        if len(flow_offsets[side]) == 0:
            continue
        for place in range(flow_offsets[side][own], flow_offsets[side][own + 1]):
            at = put_fixed64(event, put_varint(event, at, FLOW_KEY), flows[side][place])
    return at


@compiled_part
def put_packet(out: Bytes, at: int, time_ns: int, sequence: Bytes, event: Bytes, event_bytes: int) -> int:
    """Write a packet: time, what every packet of the sequence has, and the event."""
    body = 2 + varint_bytes(time_ns) + len(sequence) + varint_bytes(event_bytes) + event_bytes
    out[at] = PACKET_KEY
    at = put_varint(out, at + 1, body)
    out[at] = TIMESTAMP_KEY
    at = put_varint(out, at + 1, time_ns)
    at = put_bytes(out, at, sequence, 0, len(sequence))
    out[at] = TRACK_EVENT_KEY
    at = put_varint(out, at + 1, event_bytes)
    return put_bytes(out, at, event, 0, event_bytes)


@compiled_as(
    types.int64(
        _INTS,
        _INTS,
        _INTS,
        _READ_BYTES,
        types.UniTuple(_INTS, 3),
        types.uint8[:, ::1],
        _INTS,
        types.int64[:, ::1],
        _FLAGS,
        _INTS,
        _READ_BYTES,
        types.UniTuple(_INTS, 2),
        types.UniTuple(types.uint64[::1], 2),
        _BYTES,
        _BYTES,
    )
)
def encode_events(
    time_ns: Ints,
    row: Ints,
    track_uid: Ints,
    sequence: Bytes,
    iids: tuple[Ints, Ints, Ints],
    heads: Bytes,
    head_bytes: Ints,
    values: Ints,
    present: Flags,
    json_offsets: Ints,
    json: Bytes,
    flow_offsets: tuple[Ints, Ints],
    flows: tuple[Unsigned, Unsigned],
    event: Bytes,
    out: Bytes,
) -> int:
    """Packets of events, one after another; how many bytes of `out` they take.

    Args:
        time_ns, row, track_uid: int64, shape (events,): the row of the columns that begins, or an end if < 0.
        sequence: Bytes that each packet has behind its time.
        iids: Of name, source location and category by row; 0 for none. The latter two may be empty arrays.
        heads: uint8, shape (annotations, width): what stands before an annotation's value, after its length.
        head_bytes: int64, shape (annotations,): length of each head; negative where values are 8 bytes long.
        values: int64, shape (annotations, rows): integers, or the bits of doubles.
        present: bool, shape (annotations, rows).
        json_offsets, json: Further fields of the event by row; empty arrays for none.
        flow_offsets, flows: Numbers of flows by row, twice; empty arrays for none.
        event: Room for one event.
        out: Room for all.
    """
    filled = 0
    for number in range(len(row)):
        own = row[number]
        event[0], event[1], event[2] = TYPE_KEY, BEGIN if own >= 0 else END, TRACK_KEY
        at = put_varint(event, 3, track_uid[number])
        if own >= 0:
            at = put_names(event, at, iids, own)
            at = put_annotations(event, at, heads, head_bytes, values, present, own)
            if len(json_offsets) > 0:
                at = put_bytes(event, at, json, json_offsets[own], json_offsets[own + 1])
            at = put_flows(event, at, flow_offsets, flows, own)
        filled = put_packet(out, filled, time_ns[number], sequence, event, at)
    return filled
