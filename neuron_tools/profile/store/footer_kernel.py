"""Walks the end of a Parquet file, compiled: where its row groups stand, and row groups for another place.

The end is a struct `FileMetaData` in Thrift's compact protocol: fields with their distance to the one before,
numbers in base 128, a zero byte behind the last field. Numbers of fields:
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import types

from neuron_tools.arrays import Bytes
from neuron_tools.compiled import compiled_as, copy_bytes

Places = tuple[int, int]

ROWS, GROUPS = 3, 4
"""Fields of the file."""
COLUMNS, GROUP_OFFSET, ORDINAL = 1, 5, 7
"""Fields of a row group."""
META, CHUNK_OFFSETS = 3, (2, 4, 6)
"""Fields of a column of a row group: what is told of it, and offsets in the file."""
META_OFFSETS = (9, 10, 11, 14)
"""Offsets in the file that are told of a column: of data, index and dictionary pages, of a Bloom filter."""
STOP, TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, STRUCT, FIELDS = 0, 1, 2, 3, 7, 8, 9, 10, 12, 13
"""Types of values (numbers have the others), and the inside of a struct."""
DEEPEST = 64
HEAD_END, ROW_COUNT, GROUPS_BEGIN, GROUP_COUNT, GROUPS_END = range(5)
"""What `locate` finds: where the fields before the number of rows end; the number of rows; where the row
groups begin; how many there are; where they end and the further fields begin."""
LONGEST_NUMBER = 10

_INT, _READ, _WRITE = types.int64, types.Array(types.uint8, 1, "C", readonly=True), types.uint8[::1]
_PLACES = types.UniTuple(_INT, 2)


@compiled_as(_PLACES(_READ, _INT))
def number_at(data: Bytes, at: int) -> Places:
    """A number in base 128, and the place behind it."""
    value, shift = np.int64(0), 0
    while data[at] & 0x80:
        value |= np.int64(data[at] & 0x7F) << shift
        shift += 7
        at += 1
    return value | np.int64(data[at]) << shift, at + 1


@compiled_as(_INT(_WRITE, _INT, _INT))
def put_number(out: Bytes, to: int, value: int) -> int:
    """Write a number >= 0 in base 128; the place behind it."""
    while value > 0x7F:
        out[to] = np.uint8(value & 0x7F | 0x80)
        value >>= 7
        to += 1
    out[to] = np.uint8(value)
    return to + 1


@compiled_as(_PLACES(_READ, _INT, _INT))
def field_at(data: Bytes, at: int, before: int) -> Places:
    """Number of the field that begins here, and where its value begins."""
    step = data[at] >> 4
    if step:
        return before + step, at + 1
    coded, behind = number_at(data, at + 1)
    return (coded >> 1) ^ -(coded & 1), behind


@compiled_as(_PLACES(_READ, _INT))
def list_at(data: Bytes, at: int) -> Places:
    """How many elements a list has, and where the first one begins."""
    count = data[at] >> 4
    if count < 15:
        return np.int64(count), at + 1
    return number_at(data, at + 1)


@compiled_as(_INT(_READ, _INT, _INT))
def behind_plain(data: Bytes, at: int, kind: int) -> int:
    """The place behind a value that holds no others."""
    if kind == BINARY:
        length, at = number_at(data, at)
        return at + length
    if kind in (TRUE, FALSE):
        return at
    if kind == BYTE:
        return at + 1
    return at + 8 if kind == DOUBLE else number_at(data, at)[1]


@compiled_as(_INT(_READ, _INT, _INT))
def behind(data: Bytes, at: int, kind: int) -> int:
    """The place behind a value of a type."""
    kinds, left = np.empty(DEEPEST, np.int64), np.zeros(DEEPEST, np.int64)
    depth, kinds[0], left[0] = 0, kind, 1
    while depth >= 0:
        outer = kinds[depth]
        if outer == FIELDS and data[at] == STOP:
            depth, at = depth - 1, at + 1
            continue
        if outer != FIELDS and left[depth] == 0:
            depth -= 1
            continue
        left[depth] -= 1
        if outer in (STRUCT, LIST, SET, FIELDS):
            depth += 1
        if outer == FIELDS:
            kinds[depth], left[depth] = data[at] & 15, 1
            at = field_at(data, at, 0)[1]
        elif outer == STRUCT:
            kinds[depth] = FIELDS
        elif outer in (LIST, SET):
            inner = data[at] & 15
            kinds[depth] = BYTE if inner in (TRUE, FALSE) else inner
            left[depth], at = list_at(data, at)
        else:
            at = behind_plain(data, at, outer)
    return at


@compiled_as(types.void(_READ, types.int64[::1]))
def locate(data: Bytes, found: npt.NDArray[np.int64]) -> None:
    """Find the parts of the end of a file (see `HEAD_END`)."""
    at, field = np.int64(0), np.int64(0)
    while data[at] != STOP:
        begin, kind = at, np.int64(data[at] & 15)
        field, at = field_at(data, at, field)
        if field == ROWS:
            found[HEAD_END] = begin
            found[ROW_COUNT] = number_at(data, at)[0] >> 1
        elif field == GROUPS:
            found[GROUP_COUNT], found[GROUPS_BEGIN] = list_at(data, at)
        at = behind(data, at, kind)
        if field == GROUPS:
            found[GROUPS_END] = at


@compiled_as(_INT(_READ, _INT, _INT, _WRITE, _INT))
def copy(data: Bytes, begin: int, end: int, out: Bytes, to: int) -> int:
    """Copy bytes; the place behind them."""
    copy_bytes(out, to, data, begin, end - begin)
    return to + end - begin


@compiled_as(_PLACES(_READ, _INT, _INT, _WRITE, _INT))
def copy_value(data: Bytes, at: int, kind: int, out: Bytes, to: int) -> Places:
    """Copy a value of a type; the places behind both."""
    end = behind(data, at, kind)
    return end, copy(data, at, end, out, to)


@compiled_as(types.UniTuple(_INT, 4)(_READ, _INT, _INT, _WRITE, _INT))
def copy_head(data: Bytes, at: int, before: int, out: Bytes, to: int) -> tuple[int, int, int, int]:
    """Copy what stands before a field's value: its number, its type, and the places behind both."""
    kind = np.int64(data[at] & 15)
    field, value = field_at(data, at, before)
    return field, kind, value, copy(data, at, value, out, to)


@compiled_as(_PLACES(_READ, _INT, _INT, _WRITE, _INT))
def move_offset(data: Bytes, at: int, moved: int, out: Bytes, to: int) -> Places:
    """Write an offset that is greater by `moved`; one of 0 says nothing and stays."""
    coded, at = number_at(data, at)
    return at, put_number(out, to, coded + 2 * moved if coded else coded)


@compiled_as(_PLACES(_READ, _INT, _INT, _WRITE, _INT))
def move_meta(data: Bytes, at: int, moved: int, out: Bytes, to: int) -> Places:
    """Write what is told of a column of a row group; the places behind both."""
    field = np.int64(0)
    while data[at] != STOP:
        field, kind, at, to = copy_head(data, at, field, out, to)
        if field in META_OFFSETS:
            at, to = move_offset(data, at, moved, out, to)
        else:
            at, to = copy_value(data, at, kind, out, to)
    out[to] = STOP
    return at + 1, to + 1


@compiled_as(_PLACES(_READ, _INT, _INT, _WRITE, _INT))
def move_column(data: Bytes, at: int, moved: int, out: Bytes, to: int) -> Places:
    """Write a column of a row group; the places behind both."""
    field = np.int64(0)
    while data[at] != STOP:
        field, kind, at, to = copy_head(data, at, field, out, to)
        if field == META:
            at, to = move_meta(data, at, moved, out, to)
        elif field in CHUNK_OFFSETS:
            at, to = move_offset(data, at, moved, out, to)
        else:
            at, to = copy_value(data, at, kind, out, to)
    out[to] = STOP
    return at + 1, to + 1


@compiled_as(_PLACES(_READ, _INT, _INT, _INT, _WRITE, _INT))
def move_group(data: Bytes, at: int, moved: int, ordinal: int, out: Bytes, to: int) -> Places:
    """Write a row group whose bytes stand `moved` bytes further on; the places behind both."""
    field = np.int64(0)
    while data[at] != STOP:
        field, kind, at, to = copy_head(data, at, field, out, to)
        if field == COLUMNS:
            begin = at
            count, at = list_at(data, at)
            to = copy(data, begin, at, out, to)
            for _ in range(count):
                at, to = move_column(data, at, moved, out, to)
        elif field == GROUP_OFFSET:
            at, to = move_offset(data, at, moved, out, to)
        elif field == ORDINAL:
            at, to = number_at(data, at)[1], put_number(out, to, 2 * ordinal)
        else:
            at, to = copy_value(data, at, kind, out, to)
    out[to] = STOP
    return at + 1, to + 1


@compiled_as(_INT(_READ, types.int64[::1], _INT, _INT, _WRITE))
def move_groups(data: Bytes, found: npt.NDArray[np.int64], moved: int, ordinal: int, out: Bytes) -> int:
    """Write all row groups of an end for a file in which they stand further on; how many bytes they take.

    Args:
        found: What `locate` found.
        moved: How many bytes further on.
        ordinal: How many row groups stand before them.
        out: Room for them: offsets may take `LONGEST_NUMBER` bytes each.
    """
    at, to = found[GROUPS_BEGIN], np.int64(0)
    for group in range(found[GROUP_COUNT]):
        at, to = move_group(data, at, moved, ordinal + group, out, to)
    return int(to)
