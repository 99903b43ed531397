"""Interned strings of Perfetto traces: each different text once, referred to by number."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.export import wire
from neuron_tools.profile.export.timeline import Slices
from neuron_tools.profile.perfetto_fields import field_number
from neuron_tools.profile.store.recorded import text_codes

IID = 1
"""Field number of `iid`, and of the text beside it (2), in every message of InternedData used here."""
TEXT = 2
LINE_NUMBER = field_number("SourceLocation", "line_number")
LARGEST_RECTANGLE_BYTES = 1 << 22


@frozen
class Interned:
    """Texts made into numbers.

    Attributes:
        message: Fields of an InternedData message that define the numbers.
        iid: int64, shape (rows,): each row's number; 0 = null.
        count: How many numbers were given out.
    """

    message: bytes
    iid: Ints
    count: int


def intern_texts(field: str, column: pa.DictionaryArray, first_iid: int = 1) -> Interned:
    """Interns texts into the InternedData field of that name, with numbers from `first_iid` on."""
    codes, used = _compact(text_codes(column), len(column.dictionary))
    texts = column.dictionary.take(pa.array(used))
    iid = np.where(codes < 0, 0, codes + first_iid)
    return Interned(_definitions(field, texts, first_iid), iid, len(used))


def intern_locations(slices: Slices) -> Interned | None:
    """Interns the source lines of a batch; None where no slice has one."""
    if slices.source_file is None:
        return None
    files = text_codes(slices.source_file)
    line = np.zeros(len(slices), np.int64)
    if slices.source_line is not None:
        line = np.clip(slices.source_line.fill_null(0).to_numpy(zero_copy_only=False), 0, 0x7FFFFFFF)
    pairs, place = np.unique(np.where(files < 0, -1, files << 32 | line), return_inverse=True)
    known = pairs[pairs >= 0]
    texts = slices.source_file.dictionary.take(pa.array(known >> 32))
    message = _definitions("source_locations", texts, 1, known & 0xFFFFFFFF)
    return Interned(message, place.reshape(-1) + 1 - (len(pairs) - len(known)), len(known))


def _compact(codes: Ints, count: int) -> tuple[Ints, Ints]:
    """Codes renumbered without gaps, and the old code of each new one: a part uses part of a dictionary."""
    is_used = np.zeros(count, np.bool_)
    is_used[codes[codes >= 0]] = True
    used = np.flatnonzero(is_used)
    if len(used) == count:
        return codes, used
    renumbered = np.append(np.cumsum(is_used) - 1, -1)
    return renumbered[codes], used


def _definitions(field: str, texts: pa.Array, first_iid: int, lines: Ints | None = None) -> bytes:
    """Definitions of texts without nulls, numbered from `first_iid`; with lines, of source locations."""
    number = field_number("InternedData", field)
    offsets, data = text_buffers(texts)
    lengths = np.diff(offsets)
    parts = []
    first = 0
    while first < len(texts):
        last = first + _rows_that_fit(lengths[first:])
        pieces = [
            wire.number_field(IID, np.arange(first_iid + first, first_iid + last)),
            wire.message_field(TEXT, wire.texts(offsets[first : last + 1], data)),
        ]
        if lines is not None:
            pieces.append(wire.number_field(LINE_NUMBER, lines[first:last]))
        parts.append(wire.message_field(number, wire.joined(*pieces)).pack())
        first = last
    return b"".join(parts)


def _rows_that_fit(lengths: Ints) -> int:
    """How many rows, at least one, make a rectangle of bounded size."""
    widest = np.maximum.accumulate(lengths)
    too_large = widest * np.arange(1, len(lengths) + 1) > LARGEST_RECTANGLE_BYTES
    return max(1, int(np.argmax(too_large))) if too_large.any() else len(lengths)


def text_buffers(texts: pa.Array) -> tuple[Ints, npt.NDArray[np.uint8]]:
    """Offsets (rows + 1) and UTF-8 bytes of a string array without nulls."""
    _, offsets, data = texts.cast(pa.string()).buffers()
    if not len(texts):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    window = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return window.astype(np.int64), content
