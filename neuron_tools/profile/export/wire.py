"""Protobuf messages by the thousand: columns of values in, concatenated messages out, without a Python loop.

A `Cells` is a rectangle of bytes, one message (or piece of one) a row, with a mask that says which bytes
exist. Pieces are set side by side, given a tag and a length, and at the end the masked bytes are taken in
row order: what results is the ordinary protobuf encoding
(https://protobuf.dev/programming-guides/encoding/), checked in the tests against the generated classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

VARINT = 0
FIXED64 = 1
LENGTH_DELIMITED = 2

UInt8Array = npt.NDArray[np.uint8]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Cells:
    """One piece of a message per row.

    Attributes:
        data: uint8, shape (rows, width).
        keep: bool, same shape; bytes where it is False do not exist.
    """

    data: UInt8Array
    keep: BoolArray

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Bytes of each row, shape (rows,)."""
        lengths: npt.NDArray[np.int64] = np.count_nonzero(self.keep, axis=1)
        return lengths

    def where(self, present: BoolArray) -> Cells:
        """The same pieces, left out in the rows where `present` (shape (rows,)) is False."""
        return self if present.all() else Cells(self.data, self.keep & present[:, None])

    def take(self, rows: npt.NDArray[np.int64]) -> Cells:
        """The given rows in the given order."""
        return Cells(self.data[rows], self.keep[rows])

    def pack(self) -> bytes:
        """All rows one after the other."""
        return self.data[self.keep].tobytes()


def varint_bytes(value: int) -> bytes:
    """The base-128 encoding of one number >= 0."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def tag(field_number: int, wire_type: int) -> bytes:
    """The key that starts a field."""
    return varint_bytes(field_number << 3 | wire_type)


def constant(content: bytes, rows: int) -> Cells:
    """The same bytes in every row."""
    data = np.frombuffer(content, np.uint8)
    return Cells(np.broadcast_to(data, (rows, len(data))), np.broadcast_to(np.True_, (rows, len(data))))


def varints(values: npt.ArrayLike) -> Cells:
    """Base-128 numbers, shape (rows,); negative ones as their 64-bit two's complement (ten bytes)."""
    unsigned = np.ascontiguousarray(values).astype(np.int64, copy=False).view(np.uint64)
    largest = int(unsigned.max()) if len(unsigned) else 0
    width = max(1, (largest.bit_length() + 6) // 7)
    data = np.empty((len(unsigned), width), np.uint8)
    keep = np.empty((len(unsigned), width), np.bool_)
    rest = unsigned
    for position in range(width):
        keep[:, position] = True if position == 0 else rest != 0
        following = rest >> np.uint64(7)
        data[:, position] = (rest & np.uint64(0x7F)) | ((following != 0).astype(np.uint64) << np.uint64(7))
        rest = following
    return Cells(data, keep)


def fixed64(values: npt.ArrayLike) -> Cells:
    """Eight-byte little-endian numbers (float64 or 64-bit integers), shape (rows,)."""
    data = np.ascontiguousarray(values).view(np.uint8).reshape(-1, 8)
    return Cells(data, np.broadcast_to(np.True_, data.shape))


def texts(offsets: npt.NDArray[np.int64], data: UInt8Array) -> Cells:
    """Strings of differing length: row i is data[offsets[i]:offsets[i + 1]]; width is the longest one's."""
    lengths = np.diff(offsets)
    width = int(lengths.max()) if len(lengths) else 0
    if width == 0:
        return constant(b"", len(lengths))
    column = np.arange(width)
    keep = column < lengths[:, None]
    index = np.minimum(offsets[:-1, None] + column, len(data) - 1)
    return Cells(data[index], keep)


def joined(*pieces: Cells) -> Cells:
    """Pieces side by side, row by row."""
    return Cells(
        np.concatenate([piece.data for piece in pieces], axis=1),
        np.concatenate([piece.keep for piece in pieces], axis=1),
    )


def number_field(field_number: int, values: npt.ArrayLike) -> Cells:
    """A varint field."""
    numbers = varints(values)
    return joined(constant(tag(field_number, VARINT), len(numbers.data)), numbers)


def fixed64_field(field_number: int, values: npt.ArrayLike) -> Cells:
    """A fixed64 or double field."""
    numbers = fixed64(values)
    return joined(constant(tag(field_number, FIXED64), len(numbers.data)), numbers)


def repeated_fixed64_field(
    field_number: int, offsets: npt.NDArray[np.int64], values: npt.NDArray[np.uint64]
) -> Cells:
    """An unpacked repeated fixed64 field: row i has values[offsets[i]:offsets[i + 1]]."""
    head = np.frombuffer(tag(field_number, FIXED64), np.uint8)
    counts = np.diff(offsets)
    width = int(counts.max()) if len(counts) else 0
    cell = len(head) + 8
    data = np.zeros((len(counts), width, cell), np.uint8)
    present = np.arange(width) < counts[:, None]
    data[:, :, : len(head)] = head
    data[present, len(head) :] = values[offsets[0] : offsets[-1]].view(np.uint8).reshape(-1, 8)
    keep = np.broadcast_to(present[:, :, None], data.shape)
    return Cells(data.reshape(len(counts), -1), keep.reshape(len(counts), -1))


def message_field(field_number: int, content: Cells) -> Cells:
    """A length-delimited field (string or submessage) around `content`."""
    rows = len(content.data)
    return joined(constant(tag(field_number, LENGTH_DELIMITED), rows), varints(content.lengths), content)


def stacked(first: Cells, second: Cells) -> Cells:
    """The rows of `first`, then those of `second`; the narrower one is widened with absent bytes."""
    width = max(first.data.shape[1], second.data.shape[1])
    rows = len(first.data)
    data = np.zeros((rows + len(second.data), width), np.uint8)
    keep = np.zeros(data.shape, np.bool_)
    for piece, part in ((first, slice(0, rows)), (second, slice(rows, None))):
        data[part, : piece.data.shape[1]] = piece.data
        keep[part, : piece.data.shape[1]] = piece.keep
    return Cells(data, keep)
