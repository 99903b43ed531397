"""Compiled scanning of JSON text: where the objects of a list begin and end, and where their members stand.

Nothing is decoded here. One pass finds, for each object of a list, the places of the wanted members, so
that `json_columns` decodes a column at a time and never touches what nobody asked for. Text that breaks the
grammar (an unescaped quote, a missing bracket) costs the object that it stands in: the scan goes on at the
next place that looks like the start of an object.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Bytes, Ints
from neuron_tools.compiled import compiled, compiled_part

Places = npt.NDArray[np.int32]
"""Places in a text of less than two gigabytes."""

INCOMPLETE = -1
"""A value or object goes on past the end of the text."""
WRONG = -2
"""The text breaks the grammar."""

POSITION, DAMAGED, IS_CLOSED, ELSEWHERE = range(4)
"""Places in the result of `scan_objects`: next position, damaged elements, whether the list ended, elements
that are no objects."""

_QUOTE, _BACKSLASH, _COMMA, _COLON = 0x22, 0x5C, 0x2C, 0x3A
_OPEN_LIST, _CLOSE_LIST, _OPEN_OBJECT, _CLOSE_OBJECT = 0x5B, 0x5D, 0x7B, 0x7D

ENDS_WORD = np.zeros(256, np.bool_)
"""Which bytes end a bare word or number: white space, quotes, brackets, commas and colons."""
ENDS_WORD[:0x21] = True
ENDS_WORD[[_QUOTE, _COMMA, _COLON, _OPEN_LIST, _CLOSE_LIST, _OPEN_OBJECT, _CLOSE_OBJECT]] = True


@compiled
def skip_space(data: Bytes, position: int, end: int) -> int:
    """The next position that is no white space."""
    while position < end and data[position] <= 0x20:
        position += 1
    return position


@compiled
def skip_string(data: Bytes, position: int, end: int) -> int:
    """Position after the string whose opening quote stands at `position`, or INCOMPLETE."""
    position += 1
    while position < end:
        byte = data[position]
        if byte == _QUOTE:
            return position + 1
        position += 2 if byte == _BACKSLASH else 1
    return INCOMPLETE


@compiled_part
def _skip_nested(data: Bytes, position: int, end: int) -> int:
    """Position after a list or object. The kinds of the innermost 63 brackets are checked."""
    kinds = np.int64(0)
    depth = 0
    while position < end:
        byte = data[position]
        if byte == _QUOTE:
            position = skip_string(data, position, end)
            if position < 0:
                return INCOMPLETE
            continue
        if byte in (_OPEN_OBJECT, _OPEN_LIST):
            depth += 1
            kinds = (kinds << 1) | (1 if byte == _OPEN_OBJECT else 0)
        elif byte in (_CLOSE_OBJECT, _CLOSE_LIST):
            if depth <= 63 and (kinds & 1) != (1 if byte == _CLOSE_OBJECT else 0):
                return WRONG
            kinds >>= 1
            depth -= 1
            if depth == 0:
                return position + 1
        position += 1
    return INCOMPLETE


@compiled
def skip_value(data: Bytes, position: int, end: int) -> int:
    """Position after the value that starts at `position`; INCOMPLETE or WRONG.

    A bare word or number may be anything without quotes and brackets: what it means is the decoder's task.
    """
    if position >= end:
        return INCOMPLETE
    byte = data[position]
    if byte == _QUOTE:
        return skip_string(data, position, end)
    if byte in (_OPEN_OBJECT, _OPEN_LIST):
        return _skip_nested(data, position, end)
    first = position
    while position < end and not ENDS_WORD[data[position]]:
        position += 1
    if position >= end:
        return INCOMPLETE
    byte = data[position]
    is_wrong = position == first or byte in (_QUOTE, _COLON, _OPEN_OBJECT, _OPEN_LIST)
    return WRONG if is_wrong else position


@compiled
def _wanted(data: Bytes, first: int, last: int, keys: Bytes, key_offsets: Ints) -> int:
    """Number of the wanted key that equals data[first:last]; -1 if none does."""
    length = last - first
    for number in range(len(key_offsets) - 1):
        offset = key_offsets[number]
        if key_offsets[number + 1] - offset != length:
            continue
        same = True
        for step in range(length):
            if data[first + step] != keys[offset + step]:
                same = False
                break
        if same:
            return number
    return -1


@compiled_part
def _scan_object(
    data: Bytes,
    position: int,
    end: int,
    keys: Bytes,
    key_offsets: Ints,
    starts: Places,
    stops: Places,
) -> tuple[int, int]:
    """Finds the wanted members of the object at `position`; a key that repeats counts where it stands last.

    Returns:
        Position after the object, or INCOMPLETE or WRONG; and the position that was reached.
    """
    position += 1
    while True:
        position = skip_space(data, position, end)
        if position >= end:
            return INCOMPLETE, position
        if data[position] == _CLOSE_OBJECT:
            return position + 1, position
        if data[position] != _QUOTE:
            return WRONG, position
        key = position + 1
        position = skip_string(data, position, end)
        if position < 0:
            return INCOMPLETE, key
        number = _wanted(data, key, position - 1, keys, key_offsets)
        position = skip_space(data, position, end)
        if position >= end:
            return INCOMPLETE, position
        if data[position] != _COLON:
            return WRONG, position
        value = skip_space(data, position + 1, end)
        stop = skip_value(data, value, end)
        if stop < 0:
            return stop, value
        if number >= 0:
            starts[number] = value
            stops[number] = stop
        position = skip_space(data, stop, end)
        if position >= end:
            return INCOMPLETE, position
        if data[position] == _COMMA:
            position += 1
        elif data[position] != _CLOSE_OBJECT:
            return WRONG, position


@compiled
def next_object(data: Bytes, position: int, end: int) -> int:
    """Where, from `position` on, the text looks like `}, {"`: the position of `{`; INCOMPLETE if nowhere."""
    while position < end:
        if data[position] == _CLOSE_OBJECT:
            place = skip_space(data, position + 1, end)
            if place < end and data[place] == _COMMA:
                place = skip_space(data, place + 1, end)
                if place < end and data[place] == _OPEN_OBJECT:
                    inside = skip_space(data, place + 1, end)
                    if inside < end and data[inside] == _QUOTE:
                        return place
        position += 1
    return INCOMPLETE


@compiled
def scan_objects(
    data: Bytes,
    position: int,
    end: int,
    keys: Bytes,
    key_offsets: Ints,
    starts: Places,
    stops: Places,
    result: Ints,
) -> int:
    """Finds the objects of a list and their wanted members.

    Args:
        data: uint8, the text.
        position: Behind the list's opening bracket, or behind an element of it. Commas are optional, so a
            sequence of objects, one a line, is scanned as well.
        end: Where the text ends.
        keys: uint8, the wanted keys one after the other.
        key_offsets: int64, shape (keys + 1,): where each begins in `keys`.
        starts, stops: int32, shape (rows, keys + 1), filled with -1: receive the places of the values, and
            last that of the whole object.
        result: int64, shape (4,): receives POSITION, DAMAGED, IS_CLOSED and ELSEWHERE.

    Returns:
        Number of rows filled. The scan ends at the end of the list, at the end of the text (POSITION is the
        start of an element that is not complete), or when the rows are full.
    """
    rows = 0
    result[:] = 0
    while rows < starts.shape[0]:
        position = skip_space(data, position, end)
        if position >= end:
            break
        byte = data[position]
        if byte == _COMMA:
            position += 1
            continue
        if byte == _CLOSE_LIST:
            position += 1
            result[IS_CLOSED] = 1
            break
        reached = position
        if byte == _OPEN_OBJECT:
            after, reached = _scan_object(data, position, end, keys, key_offsets, starts[rows], stops[rows])
            if after >= 0:
                starts[rows, -1] = position
                stops[rows, -1] = after
                rows += 1
        else:
            after = skip_value(data, position, end)
            if after >= 0:
                result[ELSEWHERE] += 1
        if after >= 0:
            position = after
            continue
        starts[rows, :] = -1
        stops[rows, :] = -1
        if after == INCOMPLETE:
            break
        following = next_object(data, reached, end)
        if following < 0:
            break
        result[DAMAGED] += 1
        position = following
    result[POSITION] = position
    return rows


@compiled
def scan_slices(
    data: Bytes,
    firsts: Ints,
    lasts: Ints,
    keys: Bytes,
    key_offsets: Ints,
    starts: Places,
    stops: Places,
) -> None:
    """As `scan_objects`, where row i is the object data[firsts[i]:lasts[i]]; other values have no members."""
    for row in range(len(firsts)):
        if firsts[row] < 0 or data[firsts[row]] != _OPEN_OBJECT:
            continue
        _scan_object(data, firsts[row], lasts[row], keys, key_offsets, starts[row], stops[row])


@compiled
def list_members(data: Bytes, firsts: Ints, lasts: Ints, members: npt.NDArray[np.int64]) -> int:
    """All members of the objects data[firsts[i]:lasts[i]], as far as `members` has room.

    Args:
        members: int64, shape (room, 5): receives row, start and end of the key (without quotes), start and
            end of the value.

    Returns:
        Number of members there are; more than `room` where it did not suffice.
    """
    count = 0
    for row in range(len(firsts)):
        position, end = firsts[row], lasts[row]
        if position < 0 or data[position] != _OPEN_OBJECT:
            continue
        position = skip_space(data, position + 1, end)
        while position < end and data[position] == _QUOTE:
            key = position + 1
            key_end = skip_string(data, position, end)
            if key_end < 0:
                break
            colon = skip_space(data, key_end, end)
            if colon >= end or data[colon] != _COLON:
                break
            value = skip_space(data, colon + 1, end)
            stop = skip_value(data, value, end)
            if stop < 0:
                break
            if count < len(members):
                members[count, 0] = row
                members[count, 1] = key
                members[count, 2] = key_end - 1
                members[count, 3] = value
                members[count, 4] = stop
            count += 1
            position = skip_space(data, stop, end)
            if position >= end or data[position] != _COMMA:
                break
            position = skip_space(data, position + 1, end)
    return count
