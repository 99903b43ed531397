"""The slices of a batch as columns of Perfetto's numbers, and the packets of their begins and ends."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.export import wire
from neuron_tools.profile.export.interning import Interned, intern_locations, intern_texts
from neuron_tools.profile.export.json_annotations import JsonAnnotations
from neuron_tools.profile.export.slice_kernel import (
    ANNOTATION_BYTES,
    EVENT_BYTES,
    FLOW_BYTES,
    encode_events,
)
from neuron_tools.profile.export.timeline import TEXTS, SliceEvents, Slices

LARGEST_CHUNK_BYTES = 1 << 23
SEQUENCE_ID = protos.TracePacket.DESCRIPTOR.fields_by_name["trusted_packet_sequence_id"].number
SEQUENCE_FLAGS = protos.TracePacket.DESCRIPTOR.fields_by_name["sequence_flags"].number
NEEDS_STATE = protos.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
_ANNOTATION = protos.DebugAnnotation.DESCRIPTOR.fields_by_name
NAME_IID, TEXT_IID = _ANNOTATION["name_iid"].number, _ANNOTATION["string_value_iid"].number
INT, DOUBLE = _ANNOTATION["int_value"].number, _ANNOTATION["double_value"].number

Flags = npt.NDArray[np.bool_]
_NO_NUMBERS: Ints = np.zeros(0, np.int64)
_NO_FLOWS: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)
_NO_BYTES: npt.NDArray[np.uint8] = np.frombuffer(b"", np.uint8)


@frozen
class Annotations:
    """Arguments of slices; `values` and `present` of shape (arguments, rows).

    Attributes:
        heads: Bytes that stand before each argument's values.
        is_wide: Whether an argument's values are doubles, which take eight bytes.
        values: int64: whole numbers, numbers of interned texts, or the bits of doubles.
        present: bool: which rows have the argument.
    """

    heads: tuple[bytes, ...]
    is_wide: tuple[bool, ...]
    values: Ints
    present: Flags

    def head_table(self) -> npt.NDArray[np.uint8]:
        """The heads, uint8, shape (arguments, longest head)."""
        width = max(map(len, self.heads), default=1)
        padded = b"".join(head.ljust(width, b"\0") for head in self.heads)
        table = np.frombuffer(padded, np.uint8).reshape(len(self.heads), width)
        return np.array(table, np.uint8)

    def head_lengths(self) -> Ints:
        """Length of each head, negative where values are doubles; int64, shape (arguments,)."""
        pairs = zip(self.heads, self.is_wide, strict=True)
        return np.array([-len(head) if wide else len(head) for head, wide in pairs], np.int64)


@frozen
class EventColumns:
    """A batch of slices.

    Attributes:
        interned: Definitions of the strings that they use, as fields of InternedData.
        iids: Numbers of name, source location and category by row; empty where no row has one.
        annotations: Their arguments.
        further: Arguments that are JSON objects.
        flows: Offsets and numbers of the flows that start here, and of those that end here.
    """

    interned: bytes
    iids: tuple[Ints, Ints, Ints]
    annotations: Annotations
    further: JsonAnnotations | None
    flows: tuple[tuple[Ints, npt.NDArray[np.uint64]], ...]

    @classmethod
    def of(cls, slices: Slices) -> EventColumns:
        """Interns the texts of slices."""
        names = intern_texts("event_names", slices.name)
        labels = intern_texts("debug_annotation_names", pa.array(list(slices.arguments), TEXTS))
        locations = intern_locations(slices)
        categories = None if slices.category is None else intern_texts("event_categories", slices.category)
        text_definitions, text_iids, next_iid = _intern_argument_texts(slices)
        further = None
        if slices.arguments_json is not None:
            further = JsonAnnotations.of(slices.arguments_json, len(slices.arguments) + 1, next_iid)
        parts = [part for part in (names, labels, locations, categories) if part is not None]
        definitions = [part.message for part in parts] + ([further.interned] if further else [])
        return cls(
            b"".join([*definitions, text_definitions]),
            (names.iid, _iids(locations), _iids(categories)),
            _annotations(slices, labels.iid, text_iids),
            further,
            tuple(_flow_lists(column) for column in (slices.flow_out, slices.flow_in)),
        )

    def packets(self, sequence: int, events: SliceEvents, track_uid: Ints) -> Iterator[npt.NDArray[np.uint8]]:
        """The packets of events, on the tracks of the given numbers, some at a time."""
        fixed = np.frombuffer(
            wire.tag(SEQUENCE_ID, wire.VARINT)
            + wire.varint_bytes(sequence)
            + wire.tag(SEQUENCE_FLAGS, wire.VARINT)
            + wire.varint_bytes(NEEDS_STATE),
            np.uint8,
        )
        json = (_NO_NUMBERS, _NO_BYTES) if self.further is None else self.further.fields()
        flow_offsets, flows = zip(*self.flows)
        heads, head_lengths = self.annotations.head_table(), self.annotations.head_lengths()
        room = self._most_bytes(events.row)
        for chosen in _chunks(room):
            event = np.empty(int(room[chosen].max()), np.uint8)
            out = np.empty(int(room[chosen].sum()), np.uint8)
            filled = encode_events(
                events.time_ns[chosen], events.row[chosen], track_uid[chosen], fixed, self.iids, heads,
                head_lengths, self.annotations.values, self.annotations.present, *json, flow_offsets, flows,
                event, out,
            )  # fmt: skip
            yield out[:filled]

    def _most_bytes(self, row: Ints) -> Ints:
        """Bytes that the packet of each event takes at most."""
        begins = np.flatnonzero(row >= 0)
        rows = row[begins]
        most = np.full(len(row), EVENT_BYTES, np.int64)
        most[begins] += len(self.annotations.heads) * ANNOTATION_BYTES
        if self.further is not None:
            most[begins] += self.further.widths(rows)
        for offsets, _ in self.flows:
            if len(offsets):
                most[begins] += np.diff(offsets)[rows] * FLOW_BYTES
        return most


def _iids(interned: Interned | None) -> Ints:
    return _NO_NUMBERS if interned is None else interned.iid


def _chunks(room: Ints) -> Iterator[slice]:
    """Stretches of events that together need a bounded room, or single ones that need more."""
    ends = np.cumsum(room)
    first = 0
    while first < len(room):
        before = int(ends[first] - room[first])
        last = int(np.searchsorted(ends, before + LARGEST_CHUNK_BYTES, side="right"))
        yield slice(first, max(last, first + 1))
        first = max(last, first + 1)


def _intern_argument_texts(slices: Slices) -> tuple[bytes, dict[str, Ints], int]:
    """Definitions of the texts of textual arguments, each argument's numbers by label, the next number."""
    definitions, iids, first = b"", {}, 1
    for label, column in slices.arguments.items():
        if pa.types.is_dictionary(column.type):
            interned = intern_texts("debug_annotation_string_values", column, first)
            definitions += interned.message
            iids[label] = interned.iid
            first += interned.count
    return definitions, iids, first


def _annotations(slices: Slices, label_iid: Ints, text_iids: dict[str, Ints]) -> Annotations:
    values = np.empty((len(slices.arguments), len(slices)), np.int64)
    present = np.empty((len(slices.arguments), len(slices)), np.bool_)
    heads, is_wide = [], []
    for place, (label, column) in enumerate(slices.arguments.items()):
        doubles = label not in text_iids and pa.types.is_floating(column.type)
        if label in text_iids:
            values[place] = text_iids[label]
            present[place] = values[place] > 0
            key = wire.tag(TEXT_IID, wire.VARINT)
        else:
            numbers = column.fill_null(0).to_numpy(zero_copy_only=False)
            values[place] = numbers.astype("<f8").view(np.int64) if doubles else numbers
            present[place] = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else True
            key = wire.tag(DOUBLE, wire.FIXED64) if doubles else wire.tag(INT, wire.VARINT)
        name = wire.tag(NAME_IID, wire.VARINT) + wire.varint_bytes(int(label_iid[place]))
        heads.append(name + key)
        is_wide.append(doubles)
    return Annotations(tuple(heads), tuple(is_wide), values, present)


def _flow_lists(column: pa.Array | None) -> tuple[Ints, npt.NDArray[np.uint64]]:
    """Offsets (rows + 1) and values of a list column, a null being an empty list; empty arrays for None."""
    if column is None:
        return _NO_NUMBERS, _NO_FLOWS
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    values = column.flatten().cast(pa.uint64()).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), np.array(values)
