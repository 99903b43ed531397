"""Arguments that are JSON objects as Perfetto debug annotations, without a Python loop over rows."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.export import wire
from neuron_tools.profile.export.interning import intern_texts, text_buffers
from neuron_tools.profile.importers.json_rows import Members, members_of_texts
from neuron_tools.profile.perfetto_fields import field_number

_number = partial(field_number, "DebugAnnotation")
ANNOTATIONS = field_number("TrackEvent", "debug_annotations")
NAME_IID, TEXT_IID, JSON = _number("name_iid"), _number("string_value_iid"), _number("legacy_json_value")
INT, DOUBLE, BOOL = _number("int_value"), _number("double_value"), _number("bool_value")
LARGEST_RECTANGLE_BYTES = 1 << 22


@frozen
class JsonAnnotations:
    """Annotations of a batch of events.

    Attributes:
        interned: Definitions of the numbers that they use, as fields of InternedData.
        offsets: int64, shape (rows + 1,): where each row's annotations begin in `content`.
        content: uint8: fields of TrackEvent messages.
    """

    interned: bytes
    offsets: Ints
    content: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, arguments: pa.Array, first_name_iid: int, first_text_iid: int) -> JsonAnnotations:
        """Annotations of JSON objects (null = none), with numbers from the given ones on."""
        members = members_of_texts(arguments)
        names = intern_texts("debug_annotation_names", members.keys(), first_name_iid)
        texts = intern_texts(
            "debug_annotation_string_values", members.texts().dictionary_encode(), first_text_iid
        )
        parts, lengths = [], []
        for chosen in _bounded(members):
            cells = _messages(members.take(chosen), names.iid[chosen], texts.iid[chosen])
            parts.append(cells.pack())
            lengths.append(np.broadcast_to(np.asarray(cells.lengths(), np.int64), (len(chosen),)))
        total = (
            np.concatenate([[0], np.cumsum(np.concatenate(lengths))]) if lengths else np.zeros(1, np.int64)
        )
        edges = np.searchsorted(members.row, np.arange(len(arguments) + 1))
        content = np.frombuffer(b"".join(parts), np.uint8)
        return cls(names.message + texts.message, total[edges].astype(np.int64), content)

    def widths(self, rows: Ints) -> Ints:
        """Bytes of the annotations of some rows."""
        widths: Ints = np.diff(self.offsets)[rows]
        return widths

    def fields(self) -> tuple[Ints, npt.NDArray[np.uint8]]:
        """Where each row's annotations begin, and their bytes."""
        return self.offsets, self.content


def _messages(members: Members, name_iid: Ints, text_iid: Ints) -> wire.Cells:
    whole, is_whole = members.integers()
    numbers = members.numbers()
    is_number = numbers.is_valid().to_numpy(zero_copy_only=False) & ~is_whole
    doubles = numbers.fill_null(0).to_numpy(zero_copy_only=False).astype("<f8")
    is_true, is_false = members.is_word("true"), members.is_word("false")
    is_other = ~(is_whole | is_number | is_true | is_false | (text_iid > 0))
    other = members.spelled(is_other)
    annotation = wire.joined(
        wire.number_field(NAME_IID, name_iid),
        wire.number_field(INT, whole).where(is_whole),
        wire.fixed64_field(DOUBLE, doubles).where(is_number),
        wire.number_field(BOOL, is_true.astype(np.int64)).where(is_true | is_false),
        wire.number_field(TEXT_IID, text_iid).where(text_iid > 0),
        wire.message_field(JSON, wire.texts(*text_buffers(other))).where(is_other),
    )
    return wire.message_field(ANNOTATIONS, annotation)


def _bounded(members: Members) -> list[Ints]:
    """Consecutive members in pieces whose widest value times their number is bounded."""
    widths = members.widths()
    pieces, first = [], 0
    while first < len(widths):
        widest = np.maximum.accumulate(widths[first : first + LARGEST_RECTANGLE_BYTES // 64]) + 64
        too_large = widest * np.arange(1, len(widest) + 1) > LARGEST_RECTANGLE_BYTES
        count = max(1, int(np.argmax(too_large))) if too_large.any() else len(widest)
        pieces.append(np.arange(first, first + count))
        first += count
    return pieces
