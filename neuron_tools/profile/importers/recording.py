"""What an importer makes of one file: processes, tracks, rows on the file's own clock, and what went wrong.

Rows wait on disk until all files are read: only then is it known when the profile starts and how the clocks
of the ranks are related. Memory holds one batch, whatever the length of the trace.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen

LANE = "lane"
"""Column of staged rows in the place of process_idx and track_idx: index into `Recording.lanes`."""


@dataclass
class Process:
    """A process of the trace: a row of ProcessInfo."""

    name: str | None = None
    process_id: int | None = None
    command: str | None = None
    rank: int | None = None
    host: str | None = None


@dataclass
class Track:
    """A row of the timeline: a row of TraceTrack.

    Attributes:
        process: Index into `Recording.processes`.
        kind: One of the schema's `TraceTrackKind`.
        parent: Index into `Recording.tracks`; None below the process.
    """

    process: int
    name: str
    kind: str
    parent: int | None = None
    device_idx: int | None = None
    thread_id: int | None = None
    sort_index: int | None = None
    unit: str | None = None


@frozen
class Clock:
    """What is known of a file's clock.

    Attributes:
        unix_ns: What to add to its times to get nanoseconds since 1970-01-01 UTC; None if not known.
        host: Whose clock it is; None if not known.
    """

    unix_ns: int | None = None
    host: str | None = None


def _column(values: Any, dtype: pa.DataType) -> pa.Array:
    return values.cast(dtype) if isinstance(values, pa.Array) else pa.array(values, dtype)


@dataclass
class Recording:
    """One imported file.

    Attributes:
        source: The file.
        format_name: What it was recognised as.
        folder: Where its rows wait.
        lanes: Track (index into `tracks`) of each number that staged rows carry in the column `lane`.
        process_count: How many processes staged rows refer to, where they do it themselves.
        rank: Rank in its distributed job; None if it does not say.
        summary: The Summary row that the tool itself gave; None if it gave none.
        collectives: Ends of collective operations by name and number of occurrence: these happen at one
            time on all ranks. Sequences of int64 nanoseconds on the file's clock.
        with_arguments: Whether spans of Chrome traces keep what is in no column of its own.
    """

    source: Path
    format_name: str
    folder: Path
    processes: list[Process] = field(default_factory=list)
    tracks: list[Track] = field(default_factory=list)
    lanes: list[int] = field(default_factory=list)
    clock: Clock = field(default_factory=Clock)
    rank: int | None = None
    world_size: int | None = None
    collectives: dict[str, Ints] = field(default_factory=dict)
    summary: dict[str, Any] | None = None
    warnings: Counter[tuple[str, str]] = field(default_factory=Counter)
    first_ns: int | None = None
    last_ns: int | None = None
    row_counts: Counter[str] = field(default_factory=Counter)
    process_count: int = 1
    with_arguments: bool = True
    _writers: dict[str, tuple[pa.OSFile, pa.RecordBatchStreamWriter]] = field(default_factory=dict)

    def append(self, table: str, columns: Mapping[str, Any]) -> None:
        """Stages rows of a table, times on the file's own clock."""
        batch = pa.RecordBatch.from_pydict(dict(columns))
        if not batch.num_rows:
            return
        self._note_times(batch)
        if table not in self._writers:
            stream = pa.OSFile(os.fspath(self.folder / f"{table}.arrows"), "wb")
            self._writers[table] = (stream, pa.ipc.new_stream(stream, batch.schema, options=_IPC_OPTIONS))
        self._writers[table][1].write_batch(batch)
        self.row_counts[table] += batch.num_rows

    def append_samples(self, lane: Any, time_ns: Any, value: Any) -> None:
        """Stages samples of counters.

        Args:
            lane: Of all samples, or shape (samples,): of each.
            time_ns: shape (samples,), on the file's own clock.
            value: shape (samples,).
        """
        times = _column(time_ns, pa.int64())
        lanes = np.full(len(times), lane, np.int32) if isinstance(lane, int) else lane
        self.append(
            "TraceCounter",
            {LANE: _column(lanes, pa.int32()), "timestamp": times, "value": _column(value, pa.float64())},
        )

    def append_if_any(self, table: str, columns: Mapping[str, Any] | None) -> None:
        """As `append`, where there is something to stage."""
        if columns is not None:
            self.append(table, columns)

    def finish(self) -> None:
        """Closes what is staged; it can be read from now on."""
        for stream, writer in self._writers.values():
            writer.close()
            stream.close()
        self._writers.clear()

    def staged(self, table: str) -> Iterator[pa.RecordBatch]:
        """The rows of a table, to which no more will be added."""
        if table in self._writers:
            stream, writer = self._writers.pop(table)
            writer.close()
            stream.close()
        return self.batches(table)

    def batches(self, table: str) -> Iterator[pa.RecordBatch]:
        """The staged rows of a table, in the order in which they came."""
        path = self.folder / f"{table}.arrows"
        if not path.exists():
            return
        with pa.OSFile(os.fspath(path)) as source, pa.ipc.open_stream(source) as reader:
            yield from reader

    def warn(self, message: str, category: str = "Import", count: int = 1) -> None:
        """Remembers a sentence for the Warning table."""
        if count > 0:
            self.warnings[(f"{self.source.name}: {message}", category)] += count

    def warn_all(self, messages: Iterable[str]) -> None:
        """Remembers several sentences."""
        for message in messages:
            self.warn(message)

    def add_process(self, process: Process) -> int:
        """Adds a process; returns its index."""
        self.processes.append(process)
        return len(self.processes) - 1

    def add_track(self, track: Track) -> int:
        """Adds a track; returns its index."""
        self.tracks.append(track)
        return len(self.tracks) - 1

    def add_lane(self, track: int) -> int:
        """A number by which staged rows refer to a track, which may still be put elsewhere."""
        self.lanes.append(track)
        return len(self.lanes) - 1

    def _note_times(self, batch: pa.RecordBatch) -> None:
        for first, last in (("start_ts", "end_ts"), ("timestamp", "timestamp")):
            if first in batch.schema.names:
                starts, ends = batch.column(first).to_numpy(), batch.column(last).to_numpy()
                lowest, highest = int(np.min(starts)), int(np.max(ends))
                self.first_ns = lowest if self.first_ns is None else min(self.first_ns, lowest)
                self.last_ns = highest if self.last_ns is None else max(self.last_ns, highest)


_IPC_OPTIONS = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=False)
