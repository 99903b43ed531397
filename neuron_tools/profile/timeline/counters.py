"""Samples of counters: kept in order of time, with the least and greatest of each 64 beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from neuron_tools.arrays import Floats, Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.timeline.blob import BlobWriter, fitting_type
from neuron_tools.profile.timeline.scan import Names, TrackKey, split
from neuron_tools.profile.timeline.sources import COUNTER_LEVEL, CounterSource, SpanSource
from neuron_tools.profile.timeline.stored_tracks import SAMPLES_PER_BLOCK


class SampleStore:
    """The samples of one source, by counter: surveyed first, then written as they are read again.

    Memory does not grow with their number: of a counter only those are held that a later batch may precede.
    Samples without a time or a value are left out.
    """

    def __init__(self, source: CounterSource) -> None:
        self._value = source.value
        # A sample is read like a span of no duration.
        self._rows = SpanSource(
            source.table, COUNTER_LEVEL, (), core=source.core, number=source.number, start="timestamp", end=""
        )
        self._surveyed: dict[TrackKey, list[_Piece]] = defaultdict(list)
        self._counters: dict[TrackKey, _Counter] = {}

    def survey(self, batch: pa.RecordBatch) -> None:
        """Look over a batch, before any is written."""
        for key, time, _ in self._samples(batch):
            self._surveyed[key].append(_Piece(len(time), int(time.min()), int(time.max())))

    def write(self, batch: pa.RecordBatch, blob: BlobWriter) -> None:
        """Write the samples of a batch; the batches come as they were surveyed.

        Raises:
            OSError: The disk is full.
        """
        for key, time, value in self._samples(batch):
            if key not in self._counters:
                self._counters[key] = _Counter(self._surveyed[key], blob)
            self._counters[key].add(time, value)

    def finish(self) -> Iterator[tuple[TrackKey, dict[str, Any]]]:
        """Each counter's key and what the index says of it, when all is written."""
        for key, counter in self._counters.items():
            yield key, counter.finish()

    def _samples(self, batch: pa.RecordBatch) -> Iterator[tuple[TrackKey, Ints, Floats]]:
        if self._value not in batch.schema.names:
            return
        batch = batch.filter(batch.column(self._value).is_valid())
        values: Floats = (
            batch.column(self._value).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        )
        for rows in split(self._rows, 0, batch, Names()):
            yield rows.key, rows.start_ns, values[rows.row]


@frozen
class _Piece:
    """The samples of a counter in one batch."""

    count: int
    first_ns: int
    last_ns: int


class _Counter:
    """Writes the samples of one counter in order of time."""

    def __init__(self, pieces: Sequence[_Piece], blob: BlobWriter) -> None:
        self._count = sum(piece.count for piece in pieces)
        self._start_ns = min(piece.first_ns for piece in pieces)
        self._end_ns = max(piece.last_ns for piece in pieces)
        firsts = np.array([*(piece.first_ns for piece in pieces[1:]), np.iinfo(np.int64).max], np.int64)
        self._first_later_ns = iter(np.minimum.accumulate(firsts[::-1])[::-1].tolist())
        blocks = -(-self._count // SAMPLES_PER_BLOCK)
        self._time = blob.reserve(fitting_type(np.array([self._end_ns - self._start_ns])), self._count)
        self._samples = blob.reserve("f8", self._count)
        self._extremes = {name: blob.reserve("f8", blocks) for name in ("least", "greatest", "total")}
        self._held: tuple[Ints, Floats] = np.zeros(0, np.int64), np.zeros(0, np.float64)
        self._block: Floats = np.zeros(0, np.float64)

    def add(self, time: Ints, value: Floats) -> None:
        """Take the next piece, and write what nothing comes before any more."""
        time, value = np.concatenate([self._held[0], time]), np.concatenate([self._held[1], value])
        if np.any(time[1:] < time[:-1]):
            order = np.argsort(time, kind="stable")
            time, value = time[order], value[order]
        ready = int(np.searchsorted(time, next(self._first_later_ns)))
        self._held = time[ready:].copy(), value[ready:].copy()
        self._time.write(time[:ready] - self._start_ns)
        self._samples.write(value[:ready])
        self._block = np.concatenate([self._block, value[:ready]])
        self._write_blocks(len(self._block) // SAMPLES_PER_BLOCK * SAMPLES_PER_BLOCK)

    def finish(self) -> dict[str, Any]:
        """What the index says of the counter; the last piece was added."""
        self._time.write(self._held[0] - self._start_ns)  # what stands at the end of all time
        self._samples.write(self._held[1])
        self._block = np.concatenate([self._block, self._held[1]])
        self._write_blocks(len(self._block))
        return {
            "samples": self._count,
            "start_ns": self._start_ns,
            "end_ns": self._end_ns,
            "time": self._time.reference,
            "value": self._samples.reference,
            **{name: region.reference for name, region in self._extremes.items()},
        }

    def _write_blocks(self, count: int) -> None:
        if count:
            for region, values in zip(self._extremes.values(), block_extremes(self._block[:count])):
                region.write(values)
        self._block = self._block[count:].copy()


def block_extremes(value: Floats) -> tuple[Floats, Floats, Floats]:
    """Least, greatest and sum of each 64 values; the last block may be shorter."""
    first = np.arange(0, len(value), SAMPLES_PER_BLOCK)
    return (
        np.minimum.reduceat(value, first),
        np.maximum.reduceat(value, first),
        np.add.reduceat(value, first),
    )
