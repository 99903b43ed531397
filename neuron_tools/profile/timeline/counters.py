"""Samples of counters: kept in order of time, with the least and greatest of each 64 beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from neuron_tools.arrays import Floats, Ints
from neuron_tools.profile.timeline.blob import BlobWriter
from neuron_tools.profile.timeline.scan import Names, TrackKey, split
from neuron_tools.profile.timeline.sources import COUNTER_LEVEL, CounterSource, SpanSource
from neuron_tools.profile.timeline.stored_tracks import SAMPLES_PER_BLOCK


class SampleStore:
    """The samples of one source, by counter."""

    def __init__(self, source: CounterSource) -> None:
        self._value = source.value
        # A sample is read like a span of no duration.
        self._rows = SpanSource(
            source.table, COUNTER_LEVEL, (), core=source.core, number=source.number, start="timestamp", end=""
        )
        self._times: dict[TrackKey, list[Ints]] = defaultdict(list)
        self._values: dict[TrackKey, list[Floats]] = defaultdict(list)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the samples of a batch; those without a time or a value are left out."""
        if self._value not in batch.schema.names:
            return
        batch = batch.filter(batch.column(self._value).is_valid())
        values: Floats = (
            batch.column(self._value).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        )
        for rows in split(self._rows, 0, batch, Names()):
            self._times[rows.key].append(rows.start_ns.copy())
            self._values[rows.key].append(values[rows.row])

    def finish(self, blob: BlobWriter) -> Iterator[tuple[TrackKey, dict[str, Any]]]:
        """Write each counter; its key and what the index says of it."""
        for key, parts in self._times.items():
            time, value = np.concatenate(parts), np.concatenate(self._values[key])
            if np.any(time[1:] < time[:-1]):
                order = np.argsort(time, kind="stable")
                time, value = time[order], value[order]
            least, greatest, total = block_extremes(value)
            yield (
                key,
                {
                    "samples": len(time),
                    "start_ns": int(time[0]),
                    "end_ns": int(time[-1]),
                    "time": blob.append_fitting(time - time[0]),
                    "value": blob.append(value),
                    "least": blob.append(least),
                    "greatest": blob.append(greatest),
                    "total": blob.append(total),
                },
            )


def block_extremes(value: Floats) -> tuple[Floats, Floats, Floats]:
    """Least, greatest and sum of each 64 values; the last block may be shorter."""
    first = np.arange(0, len(value), SAMPLES_PER_BLOCK)
    return (
        np.minimum.reduceat(value, first),
        np.maximum.reduceat(value, first),
        np.add.reduceat(value, first),
    )
