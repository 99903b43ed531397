"""Fields of many protobuf messages as columns: the last number per message, texts, submessages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_tools.arrays import Bools, Bytes, Ints
from neuron_tools.profile.importers import protobuf_scan
from neuron_tools.profile.importers.json_rows import raw_texts
from neuron_tools.profile.importers.protobuf_scan import (
    BYTES,
    FIXED32,
    FIXED64,
    NUMBER,
    ROW,
    STOP,
    VALUE,
    VARINT,
    WIRE,
)
from neuron_tools.profile.importers.trace_file import TraceFile

MOST_MESSAGES = 1 << 17
LARGEST_MESSAGE_BYTES = 64 << 20


class Messages:
    """Some messages of one text.

    Attributes:
        data: uint8, the text.
        starts, stops: int64, shape (messages,): where each stands.
        damaged: How many break the encoding.
    """

    SCALARS: ClassVar[tuple[int, ...]] = (VARINT, FIXED64, FIXED32)

    def __init__(self, data: Bytes, starts: Ints, stops: Ints) -> None:
        self.data, self.starts, self.stops = data, starts, stops
        room = max(1024, 8 * len(starts))
        while True:
            found = np.empty((room, 5), np.int64)
            count, self.damaged = protobuf_scan.list_fields(data, starts, stops, found)
            if count <= room:
                break
            room = count
        self._found = found[:count]

    def __len__(self) -> int:
        return len(self.starts)

    def content(self, message: int) -> bytes:
        """The bytes of one message."""
        return self.data[self.starts[message] : self.stops[message]].tobytes()

    def number(self, field: int, default: int = 0) -> tuple[Ints, Bools]:
        """The last value of a scalar field in each message (bits of fixed-width ones), and where it is."""
        values = np.full(len(self), default, np.int64)
        present = np.zeros(len(self), np.bool_)
        rows = self._of(field, self.SCALARS)
        values[rows[:, ROW]] = rows[:, VALUE]
        present[rows[:, ROW]] = True
        return values, present

    def double(self, field: int) -> tuple[npt.NDArray[np.float64], Bools]:
        """The last value of a double field in each message, and where there is one."""
        bits, present = self.number(field)
        return bits.view(np.float64), present

    def numbers(self, field: int) -> tuple[Ints, Ints]:
        """Every value of a repeated scalar field, and the message that each belongs to.

        A packed field of fixed-width or base-128 numbers is not unpacked: writers of traces do not pack.
        """
        rows = self._of(field, self.SCALARS)
        return rows[:, ROW], rows[:, VALUE]

    def messages(self, field: int) -> tuple[Ints, Messages]:
        """Every value of a field of submessages, and the message that each belongs to."""
        rows = self._of(field, (BYTES,))
        return rows[:, ROW], Messages(
            self.data, np.ascontiguousarray(rows[:, VALUE]), np.ascontiguousarray(rows[:, STOP])
        )

    def places(self, field: int) -> tuple[Ints, Ints]:
        """Where the last bytes of a field stand in each message; -1 where there are none."""
        starts, stops = np.full(len(self), -1, np.int64), np.full(len(self), -1, np.int64)
        rows = self._of(field, (BYTES,))
        starts[rows[:, ROW]], stops[rows[:, ROW]] = rows[:, VALUE], rows[:, STOP]
        return starts, stops

    def texts(self, field: int) -> pa.StringArray:
        """The last text of a field in each message; null where there is none, bad UTF-8 replaced."""
        starts, stops = self.places(field)
        texts = raw_texts(self.data, starts, stops, starts >= 0)
        return valid_texts(texts)

    def _of(self, field: int, wires: tuple[int, ...]) -> Ints:
        chosen = (self._found[:, NUMBER] == field) & np.isin(self._found[:, WIRE], wires)
        rows: Ints = self._found[chosen]
        return rows


def valid_texts(texts: pa.StringArray) -> pa.StringArray:
    """The texts with bytes that are no UTF-8 replaced."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raw = texts.cast(pa.binary()).to_pylist()
        return pa.array([None if one is None else one.decode(errors="replace") for one in raw], pa.string())
    return texts


class MessageStream:
    """The elements of one repeated field of a file that is a protobuf message, in chunks.

    Attributes:
        is_truncated: Whether the file ends, or cannot be read further, in the middle.
    """

    def __init__(self, file: TraceFile, field: int) -> None:
        self.is_truncated = False
        self._file = file
        self._field = field

    def chunks(self) -> Iterator[Messages]:
        """Messages in order, at most 128 Ki at a time."""
        rest = b""
        starts, stops = np.empty(MOST_MESSAGES, np.int64), np.empty(MOST_MESSAGES, np.int64)
        for block in self._file.blocks():
            content = rest + block
            data, position, is_damaged = np.frombuffer(content, np.uint8), 0, False
            while not is_damaged:
                count, position, is_damaged = protobuf_scan.split_messages(
                    data, position, len(data), self._field, starts, stops
                )
                if count:
                    yield Messages(data, starts[:count].copy(), stops[:count].copy())
                if count < MOST_MESSAGES:
                    break
            rest = content[position:]
            if is_damaged or len(rest) > LARGEST_MESSAGE_BYTES:
                self.is_truncated = True
                return
        self.is_truncated = bool(rest) or self._file.is_truncated
