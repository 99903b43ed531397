"""Interned strings of Perfetto traces: each different text once, referred to by number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from neuron_tools.profile.export import wire
from neuron_tools.profile.export.timeline import Int64Array, Slices

IID = 1
"""Field number of `iid`, and of the text beside it (2), in every message of InternedData used here."""
TEXT = 2
LARGEST_RECTANGLE_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class Interned:
    """Texts made into numbers.

    Attributes:
        message: Fields of an InternedData message that define the numbers.
        iid: int64, shape (rows,): each row's number, from 1; 0 = null.
    """

    message: bytes
    iid: Int64Array


def intern_texts(field: str, column: pa.Array) -> Interned:
    """Interns a string column into the InternedData field of that name."""
    encoded = column.dictionary_encode()
    iid = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
    return Interned(_definitions(field, encoded.dictionary), iid)


def intern_locations(slices: Slices) -> Interned | None:
    """Interns the source lines of a batch; None where no slice has one."""
    if slices.source_file is None:
        return None
    files = slices.source_file.dictionary_encode()
    file_code = files.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    line = np.zeros(len(slices), np.int64)
    if slices.source_line is not None:
        line = np.maximum(slices.source_line.fill_null(0).to_numpy(zero_copy_only=False), 0)
    pairs, place = np.unique(np.where(file_code < 0, -1, file_code << 32 | line), return_inverse=True)
    known = pairs[pairs >= 0]
    iid = place.reshape(-1) + (1 if len(known) == len(pairs) else 0)
    names = files.dictionary.to_pylist()
    message = protos.InternedData()
    for number, pair in enumerate(known.tolist(), start=1):
        message.source_locations.add(iid=number, file_name=names[pair >> 32], line_number=pair & 0xFFFFFFFF)
    return Interned(message.SerializeToString(), iid)


def _definitions(field: str, texts: pa.Array) -> bytes:
    number = protos.InternedData.DESCRIPTOR.fields_by_name[field].number
    offsets, data = _text_buffers(texts)
    lengths = np.diff(offsets)
    parts = []
    first = 0
    while first < len(texts):
        last = first + _rows_that_fit(lengths[first:])
        text = wire.texts(offsets[first : last + 1], data)
        definition = wire.joined(
            wire.number_field(IID, np.arange(first + 1, last + 1)), wire.message_field(TEXT, text)
        )
        parts.append(wire.message_field(number, definition).pack())
        first = last
    return b"".join(parts)


def _rows_that_fit(lengths: Int64Array) -> int:
    """How many rows, at least one, make a rectangle of bounded size."""
    widest = np.maximum.accumulate(lengths)
    too_large = widest * np.arange(1, len(lengths) + 1) > LARGEST_RECTANGLE_BYTES
    return max(1, int(np.argmax(too_large))) if too_large.any() else len(lengths)


def _text_buffers(texts: pa.Array) -> tuple[Int64Array, npt.NDArray[np.uint8]]:
    """Offsets (rows + 1) and UTF-8 bytes of a string array without nulls."""
    _, offsets, data = texts.cast(pa.string()).buffers()
    if not len(texts):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    window = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return window.astype(np.int64), content
