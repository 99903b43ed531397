"""The spans of an imported trace as columns, read straight from its parts.

Texts come as places in lists of distinct ones, so that none is read twice and no query sorts or joins them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
import pyarrow as pa

from neuron_profile.analysis.remembered import remembered
from neuron_tools.arrays import Ints, Mask
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.timeline.scan import Names, integers

NO_CORRELATION = np.iinfo(np.int64).min
NO_DEVICE = -1
_TABLE = "TraceSpan"
_COLUMNS = ("process_idx", "track_idx", "start_ts", "end_ts", "name", "category", "correlation_id")
_TRACKS = """
SELECT coalesce(process_idx, 0) AS process, track_idx AS track, coalesce(name, '') AS name, kind,
    coalesce(device_idx, ?) AS device
FROM TraceTrack ORDER BY process, track
"""


@dataclass(frozen=True)
class Tracks:
    """The tracks of an imported trace, by process and number.

    Attributes:
        process, number: (tracks,) int64.
        device: (tracks,) int64, number of the device, `NO_DEVICE` = a track of the host.
        is_thread: (tracks,) whether it is a thread of the host.
        names: Of each.
    """

    process: Ints
    number: Ints
    device: Ints
    is_thread: Mask
    names: list[str]

    @property
    def is_host(self) -> Mask:
        """(tracks,) whether it belongs to no device."""
        is_host: Mask = self.device == NO_DEVICE
        return is_host

    def places(self, process: Ints, number: Ints) -> Ints:
        """Place of each of some tracks, -1 of those that nobody knows."""
        if not len(self.number):
            return np.full(len(number), -1, np.int64)
        keys, wanted = _pairs(self.process, self.number), _pairs(process, number)
        found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[found] == wanted, found, -1)


@dataclass(frozen=True)
class SpanRows:
    """Some spans, in the order in which they are stored.

    Attributes:
        place: (spans,) int64, place of its track in `Tracks`.
        start_ns, end_ns: (spans,) int64.
        name, category: (spans,) int64, places in the texts of the reading; 0 is "".
        correlation: (spans,) int64, `NO_CORRELATION` = none.
    """

    place: Ints
    start_ns: Ints
    end_ns: Ints
    name: Ints
    category: Ints
    correlation: Ints

    def __len__(self) -> int:
        return len(self.start_ns)

    def chosen(self, which: Mask | Ints) -> SpanRows:
        """Some of them, by mask or by place."""
        if which.dtype == bool and which.all():
            return self
        return SpanRows(*(getattr(self, column.name)[which] for column in fields(self)))


@dataclass(frozen=True)
class SpanTable:
    """Spans with their tracks and the texts that their columns name."""

    rows: SpanRows
    tracks: Tracks
    names: list[str]
    categories: list[str]

    def has_category(self, texts: frozenset[str]) -> Mask:
        """(spans,) whose category is among these texts."""
        return np.array([text in texts for text in self.categories], bool)[self.rows.category]

    def chosen(self, which: Mask | Ints) -> SpanTable:
        """Some of the spans, by mask or by place."""
        return replace(self, rows=self.rows.chosen(which))


@remembered
def load_tracks(profile: Profile) -> Tracks:
    """The tracks of a profile's trace."""
    rows = profile.query(_TRACKS, [NO_DEVICE])
    process, number, device = (
        rows[name].to_numpy().astype(np.int64) for name in ("process", "track", "device")
    )
    is_thread = np.array([kind == "thread" for kind in rows["kind"].to_pylist()], bool)
    return Tracks(process, number, device, is_thread, rows["name"].to_pylist())


def read_spans(profile: Profile, keep: Callable[[SpanRows], Mask]) -> SpanTable:
    """The spans of a profile's trace that are wanted; the others are dropped batch by batch. O(spans).

    Raises:
        DamagedProfileError: A part cannot be read.
        QueryError: The range of a slice passes the memory limit.
    """
    names, categories, tracks = Names(), Names(), load_tracks(profile)
    found = [SpanRows(*[np.zeros(0, np.int64)] * len(fields(SpanRows)))]
    for batch in _batches(profile):
        rows = _rows(batch, tracks, names, categories)
        known = rows.chosen(rows.place >= 0)
        found.append(known.chosen(keep(known)))
    columns = (np.concatenate([getattr(rows, each.name) for rows in found]) for each in fields(SpanRows))
    return SpanTable(SpanRows(*columns), tracks, names.texts, categories.texts)


def distinct(numbers: Ints) -> tuple[Ints, Ints]:
    """Distinct numbers as they come, and which of them each number is. O(numbers)."""
    encoded = pa.array(numbers).dictionary_encode()
    return encoded.dictionary.to_numpy(), encoded.indices.to_numpy().astype(np.int64)


def _batches(profile: Profile) -> Iterator[pa.RecordBatch]:
    if profile.range_ns is None:
        yield from profile.stored_batches(_TABLE, _COLUMNS)
        return
    rows = profile.arrow(_TABLE, _COLUMNS)
    for text in ("name", "category"):
        rows = rows.set_column(rows.schema.get_field_index(text), text, rows[text].dictionary_encode())
    yield from rows.to_batches()


def _rows(batch: pa.RecordBatch, tracks: Tracks, names: Names, categories: Names) -> SpanRows:
    return SpanRows(
        tracks.places(integers(batch, "process_idx"), integers(batch, "track_idx")),
        integers(batch, "start_ts"), integers(batch, "end_ts"),
        _codes(batch, "name", names), _codes(batch, "category", categories), _correlations(batch),
    )  # fmt: skip


def _codes(batch: pa.RecordBatch, column: str, texts: Names) -> Ints:
    if column not in batch.schema.names:
        return np.zeros(batch.num_rows, np.int64)
    return texts.encode(batch.column(column)).astype(np.int64)


def _correlations(batch: pa.RecordBatch) -> Ints:
    if "correlation_id" not in batch.schema.names:
        return np.full(batch.num_rows, NO_CORRELATION, np.int64)
    column = batch.column("correlation_id").cast(pa.int64(), safe=False)
    values: Ints = column.fill_null(NO_CORRELATION).to_numpy(zero_copy_only=False)
    return values


def _pairs(process: Ints, number: Ints) -> Ints:
    """One number for two of 32 bits each, ascending as they are."""
    return (process << 32) + number
