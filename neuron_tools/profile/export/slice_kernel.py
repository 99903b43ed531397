"""Encodes Perfetto packets of slice begins and ends, compiled: one pass over the events, no list of pieces.

Field numbers: https://perfetto.dev/docs/reference/trace-packet-proto. Fields below 16 have keys of one byte,
those used here above it keys of two.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from numba import types

from neuron_tools.profile.compiled import compiled_as

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
        at, own = 0, row[number]
        event[0], event[1], event[2], at = TYPE_KEY, BEGIN if own >= 0 else END, TRACK_KEY, 3
        rest = np.uint64(track_uid[number])
        while rest > np.uint64(0x7F):
            event[at] = np.uint8(rest & np.uint64(0x7F)) | np.uint8(0x80)
            rest >>= np.uint64(7)
            at += 1
        event[at] = np.uint8(rest)
        at += 1
        if own >= 0:
            for which in range(3):
                if which > 0 and len(iids[which]) == 0:
                    continue
                rest = np.uint64(iids[which][own])
                if rest == np.uint64(0):
                    continue
                if which == 1:
                    event[at], event[at + 1] = LOCATION_KEY & 0x7F | 0x80, LOCATION_KEY >> 7
                    at += 2
                else:
                    event[at] = NAME_KEY if which == 0 else CATEGORY_KEY
                    at += 1
                while rest > np.uint64(0x7F):
                    event[at] = np.uint8(rest & np.uint64(0x7F)) | np.uint8(0x80)
                    rest >>= np.uint64(7)
                    at += 1
                event[at] = np.uint8(rest)
                at += 1
            for argument in range(len(head_bytes)):
                if not present[argument, own]:
                    continue
                event[at] = ANNOTATION_KEY
                begin = at + 2
                at = begin
                for step in range(abs(head_bytes[argument])):
                    event[at] = heads[argument, step]
                    at += 1
                rest = np.uint64(values[argument, own])
                if head_bytes[argument] < 0:
                    for _ in range(8):
                        event[at] = np.uint8(rest & np.uint64(0xFF))
                        rest >>= np.uint64(8)
                        at += 1
                else:
                    while rest > np.uint64(0x7F):
                        event[at] = np.uint8(rest & np.uint64(0x7F)) | np.uint8(0x80)
                        rest >>= np.uint64(7)
                        at += 1
                    event[at] = np.uint8(rest)
                    at += 1
                event[begin - 1] = np.uint8(at - begin)
            if len(json_offsets) > 0:
                for place in range(json_offsets[own], json_offsets[own + 1]):
                    event[at] = json[place]
                    at += 1
            for side in range(2):
                if len(flow_offsets[side]) == 0:
                    continue
                for place in range(flow_offsets[side][own], flow_offsets[side][own + 1]):
                    event[at], event[at + 1] = FLOW_KEY & 0x7F | 0x80, FLOW_KEY >> 7
                    at += 2
                    rest = flows[side][place]
                    for _ in range(8):
                        event[at] = np.uint8(rest & np.uint64(0xFF))
                        rest >>= np.uint64(8)
                        at += 1
        # The packet: key, length, time, sequence, event.
        time_bytes, event_bytes = 1, 1
        rest = np.uint64(time_ns[number]) >> np.uint64(7)
        while rest > np.uint64(0):
            time_bytes += 1
            rest >>= np.uint64(7)
        rest = np.uint64(at) >> np.uint64(7)
        while rest > np.uint64(0):
            event_bytes += 1
            rest >>= np.uint64(7)
        lengths = (np.uint64(2 + time_bytes + len(sequence) + event_bytes + at), np.uint64(time_ns[number]))
        for which in range(2):
            out[filled] = PACKET_KEY if which == 0 else TIMESTAMP_KEY
            filled += 1
            rest = lengths[which]
            while rest > np.uint64(0x7F):
                out[filled] = np.uint8(rest & np.uint64(0x7F)) | np.uint8(0x80)
                rest >>= np.uint64(7)
                filled += 1
            out[filled] = np.uint8(rest)
            filled += 1
        for place in range(len(sequence)):
            out[filled + place] = sequence[place]
        filled += len(sequence)
        out[filled] = TRACK_EVENT_KEY
        filled += 1
        rest = np.uint64(at)
        while rest > np.uint64(0x7F):
            out[filled] = np.uint8(rest & np.uint64(0x7F)) | np.uint8(0x80)
            rest >>= np.uint64(7)
            filled += 1
        out[filled] = np.uint8(rest)
        filled += 1
        for place in range(at):
            out[filled + place] = event[place]
        filled += at
    return filled
