"""Protobuf messages by the thousand: columns of values in, concatenated messages out, without a Python loop.

`Cells` are pieces of messages, one message a row: constants (tags, and whatever is the same in all rows) and
columns of bytes of differing length. Putting pieces side by side and framing them with a tag and a length
only collects them; `pack` then copies each piece of each row to its place. What results is the ordinary
protobuf encoding (https://protobuf.dev/programming-guides/encoding/), checked in the tests against the
generated classes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Bools, Bytes, Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.export.wire_kernel import encode_varints, put_constant, put_rows

VARINT = 0
FIXED64 = 1
LENGTH_DELIMITED = 2

ALL_PRESENT: Bools = np.zeros(0, np.bool_)
ALL_BYTES: Ints = np.zeros(0, np.int64)


@frozen
class Piece:
    """Some bytes of each row.

    Attributes:
        data: uint8, shape (rows, width), or (width,) where all rows have the same bytes.
        lengths: int64, shape (rows,): how many of them exist, from the left; None = all.
        present: bool, shape (rows,): rows that have the piece at all; None = all.
    """

    data: Bytes
    lengths: Ints | None = None
    present: Bools | None = None

    @property
    def width(self) -> int:
        """Bytes of the widest row."""
        return int(self.data.shape[-1])

    def is_constant(self) -> bool:
        """Whether all rows have the same bytes, where they have them."""
        return self.data.ndim == 1 and self.lengths is None

    def row_lengths(self) -> Ints | int:
        """Bytes of each row; one number where all are equal."""
        lengths: Ints | int = self.width if self.lengths is None else self.lengths
        return lengths if self.present is None else lengths * self.present

    def put(self, out: Bytes, places: Ints) -> None:
        """Copies each row's bytes to its place in `out`, and moves the places behind them."""
        present = ALL_PRESENT if self.present is None else self.present
        if self.data.ndim == 1 and self.lengths is None:
            put_constant(out, places, self.data, present)
            return
        data = self.data if self.data.ndim == 2 else np.broadcast_to(self.data, (len(places), self.width))
        lengths = ALL_BYTES if self.lengths is None else self.lengths
        put_rows(out, places, np.ascontiguousarray(data), lengths, present)


@frozen
class Cells:
    """One message, or part of one, a row."""

    rows: int
    pieces: tuple[Piece, ...]

    def lengths(self) -> Ints | int:
        """Bytes of each row; one number where all are equal."""
        return sum((piece.row_lengths() for piece in self.pieces), start=0)

    def where(self, present: Bools) -> Cells:
        """The same, left out in the rows where `present`, shape (rows,), is False."""
        if present.all():
            return self
        limited = (
            replace(piece, present=present if piece.present is None else piece.present & present)
            for piece in self.pieces
        )
        return Cells(self.rows, tuple(limited))

    def row_lengths(self) -> Ints:
        """Bytes of each row, int64, shape (rows,)."""
        return np.broadcast_to(np.asarray(self.lengths(), np.int64), (self.rows,)).astype(np.int64)

    def put(self, out: Bytes, places: Ints) -> None:
        """Copies each row to its place in `out`; `places`, int64, shape (rows,), is used up."""
        for piece in self.pieces:
            piece.put(out, places)

    def pack(self) -> bytes:
        """All rows one after the other."""
        ends = np.cumsum(self.row_lengths())
        out = np.empty(int(ends[-1]) if self.rows else 0, np.uint8)
        self.put(out, ends - self.row_lengths())
        return out.tobytes()


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
    return Cells(rows, (Piece(np.frombuffer(content, np.uint8)),) if content else ())


def varints(values: npt.ArrayLike) -> Cells:
    """Base-128 numbers, shape (rows,); negative ones as their 64-bit two's complement (ten bytes)."""
    numbers = np.ascontiguousarray(values).astype(np.int64, copy=False).view(np.uint64)
    largest = int(numbers.max()) if len(numbers) else 0
    width = max(1, (largest.bit_length() + 6) // 7)
    data = np.empty((len(numbers), width), np.uint8)
    lengths = np.empty(len(numbers), np.int64)
    encode_varints(numbers, data, lengths)
    all_equal = len(lengths) > 0 and bool(lengths[0] == width) and bool((lengths == width).all())
    return Cells(len(numbers), (Piece(data, None if all_equal else lengths),))


def fixed64(values: npt.ArrayLike) -> Cells:
    """Eight-byte little-endian numbers (float64 or 64-bit integers), shape (rows,)."""
    data = np.ascontiguousarray(values).view(np.uint8).reshape(-1, 8)
    return Cells(len(data), (Piece(data),))


def texts(offsets: Ints, data: Bytes) -> Cells:
    """Strings of differing length: row i is data[offsets[i]:offsets[i + 1]]; width is the longest one's."""
    lengths = np.diff(offsets)
    width = int(lengths.max()) if len(lengths) else 0
    if width == 0:
        return constant(b"", len(lengths))
    index = np.minimum(offsets[:-1, None] + np.arange(width), len(data) - 1)
    return Cells(len(lengths), (Piece(data[index], lengths),))


def joined(*parts: Cells) -> Cells:
    """Parts side by side, row by row; neighbouring constants become one."""
    pieces: list[Piece] = []
    for piece in (piece for part in parts for piece in part.pieces):
        last = pieces[-1] if pieces else None
        if last and last.is_constant() and piece.is_constant() and last.present is piece.present:
            pieces[-1] = replace(last, data=np.concatenate([last.data, piece.data]))
        else:
            pieces.append(piece)
    return Cells(parts[0].rows, tuple(pieces))


def number_field(field_number: int, values: npt.ArrayLike) -> Cells:
    """A varint field."""
    numbers = varints(values)
    return joined(constant(tag(field_number, VARINT), numbers.rows), numbers)


def fixed64_field(field_number: int, values: npt.ArrayLike) -> Cells:
    """A fixed64 or double field."""
    numbers = fixed64(values)
    return joined(constant(tag(field_number, FIXED64), numbers.rows), numbers)


def message_field(field_number: int, content: Cells) -> Cells:
    """A length-delimited field (string or submessage) around `content`."""
    head = tag(field_number, LENGTH_DELIMITED)
    lengths = content.lengths()
    if isinstance(lengths, int):
        return joined(constant(head + varint_bytes(lengths), content.rows), content)
    return joined(constant(head, content.rows), varints(lengths), content)
