"""Compiled scanning of protobuf messages: their fields as columns, one level at a time.

The encoding is that of https://protobuf.dev/programming-guides/encoding/. A message that breaks it counts up
to the place where it does.
"""

from __future__ import annotations

import numpy as np

from neuron_tools.arrays import Bytes, Ints
from neuron_tools.compiled import compiled, compiled_part

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
ROW, NUMBER, WIRE, VALUE, STOP = range(5)
"""Columns of what `list_fields` finds."""


@compiled
def _varint(data: Bytes, position: int, end: int) -> tuple[np.int64, int]:
    """A base-128 number, its bits as int64, and the position after it; -1 where it does not end."""
    value = np.uint64(0)
    for step in range(10):
        if position >= end:
            return np.int64(0), -1
        byte = data[position]
        position += 1
        value |= np.uint64(byte & 0x7F) << np.uint64(7 * step)
        if byte < 0x80:
            return np.int64(value), position
    return np.int64(0), -2


@compiled_part
def _fixed(data: Bytes, position: int, width: int) -> np.int64:
    """A little-endian number, its bits as int64."""
    value = np.uint64(0)
    for step in range(width):
        value |= np.uint64(data[position + step]) << np.uint64(8 * step)
    bits: np.int64 = np.int64(value)
    return bits


@compiled
def list_fields(data: Bytes, starts: Ints, stops: Ints, found: Ints) -> tuple[int, int]:
    """All fields of some messages, as far as `found` has room.

    Args:
        starts, stops: int64, shape (messages,): where each stands.
        found: int64, shape (room, 5), receives: message, field number, wire type, value (the number, the bits
            of a fixed-width one, or where bytes begin), and where bytes end.

    Returns:
        How many fields there are (more than `room` where that did not suffice), and how many messages are
        damaged.
    """
    count, damaged = 0, 0
    for row in range(len(starts)):
        position, end = starts[row], stops[row]
        while position < end:
            key, position = _varint(data, position, end)
            wire = key & 7
            number = np.int64(np.uint64(key) >> np.uint64(3))
            if position < 0 or number <= 0:
                damaged += 1
                break
            stop = np.int64(0)
            if wire == VARINT:
                value, position = _varint(data, position, end)
            elif wire == FIXED64 or wire == FIXED32:  # noqa: SIM109 (compiled)
                width = 8 if wire == FIXED64 else 4
                if position + width > end:
                    position = -1
                else:
                    value = _fixed(data, position, width)
                    position += width
            elif wire == BYTES:
                length, position = _varint(data, position, end)
                if position < 0 or length < 0 or length > end - position:
                    position = -1
                else:
                    value = np.int64(position)
                    position += length
                    stop = np.int64(position)
            else:
                position = -1
            if position < 0:
                damaged += 1
                break
            if count < len(found):
                found[count, 0] = row
                found[count, 1] = number
                found[count, 2] = wire
                found[count, 3] = value
                found[count, 4] = stop
            count += 1
    return count, damaged


@compiled
def split_messages(
    data: Bytes, position: int, end: int, field: int, starts: Ints, stops: Ints
) -> tuple[int, int, bool]:
    """The elements of a repeated message field of a message that is read in pieces.

    Args:
        field: Number of the field; others are passed over.
        starts, stops: int64, shape (room,): receive where the elements stand.

    Returns:
        Number of elements; the position up to which the text was used; whether it is damaged there.
    """
    count = 0
    while position < end and count < len(starts):
        key, after = _varint(data, position, end)
        if after == -1:
            return count, position, False
        wire = key & 7
        number = np.int64(np.uint64(key) >> np.uint64(3))
        if after == -2 or number <= 0:
            return count, position, True
        if wire == VARINT:
            _, stop = _varint(data, after, end)
            if stop == -2:
                return count, position, True
        elif wire == FIXED64:
            stop = after + 8
        elif wire == FIXED32:
            stop = after + 4
        elif wire == BYTES:
            length, first = _varint(data, after, end)
            if first == -2 or (first > 0 and (length < 0 or length > (1 << 31))):
                return count, position, True
            stop = first + length if first > 0 else -1
            if stop > 0 and stop <= end and number == field:
                starts[count] = first
                stops[count] = stop
                count += 1
        else:
            return count, position, True
        if stop < 0 or stop > end:
            return count, position, False
        position = stop
    return count, position, False
