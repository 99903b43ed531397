"""Staged rows of all files into one profile: numbered anew, on one clock."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.profile.importers.clocks import RelatedClocks, Relation
from neuron_tools.profile.importers.recording import LANE, Recording
from neuron_tools.profile.importers.renumber import counts_rows, renumber
from neuron_tools.profile.schema import TABLES
from neuron_tools.profile.writer import ProfileWriter


def assemble(
    recordings: Sequence[Recording], related: RelatedClocks, writer: ProfileWriter
) -> dict[str, int]:
    """Writes everything that was staged.

    Returns:
        Rows by table.
    """
    rows: Counter[str] = Counter()
    first_process = 0
    for file, (recording, relation) in enumerate(zip(recordings, related.relations, strict=True)):
        in_order = counts_rows(recording) if file else True
        placed = _Placed(recording, relation, first_process, related.start_unix_ns)
        for table in recording.row_counts:
            for batch in recording.batches(table):
                columns = placed.columns(table, batch)
                renumber(table, columns, file, in_order=in_order)
                writer.append(table, columns)
                rows[table] += batch.num_rows
        _write_processes(recording, relation, first_process, related.start_unix_ns, writer)
        _write_tracks(recording, first_process, writer)
        first_process += max(len(recording.processes), recording.process_count)
    _write_warnings(recordings, related, writer)
    return dict(rows)


class _Placed:
    """One file's rows on their way into the profile."""

    def __init__(
        self, recording: Recording, relation: Relation, first_process: int, start_unix_ns: int | None
    ) -> None:
        self._relation = relation
        self._start_unix_ns = start_unix_ns
        self._first_process = first_process
        tracks = [recording.tracks[track] for track in recording.lanes]
        numbers = track_numbers(recording)
        self._process_of = np.array([first_process + track.process for track in tracks], np.int32)
        self._track_of = np.array([numbers[track] for track in recording.lanes], np.int32)

    def columns(self, table: str, batch: pa.RecordBatch) -> dict[str, Any]:
        """Columns of the profile's table."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        self._place(table, columns, batch.num_rows)
        self._shift(table, columns)
        if "start_ts" in columns and "end_ts" in columns and "duration_ns" in TABLES[table].by_name:
            columns["duration_ns"] = pc.subtract(columns["end_ts"], columns["start_ts"])
        if table == "ProcessInfo":
            self._set_clock(columns, batch.num_rows)
        return columns

    def _place(self, table: str, columns: dict[str, Any], rows: int) -> None:
        lane = columns.pop(LANE, None)
        if lane is not None:
            lanes = lane.to_numpy()
            columns["process_idx"] = pa.array(self._process_of[lanes])
            columns["track_idx"] = pa.array(self._track_of[lanes])
        elif "process_idx" in TABLES[table].by_name:
            own = columns.get("process_idx", pa.array(np.zeros(rows, np.int32)))
            filled = pc.fill_null(own.cast(pa.int32()), 0)
            columns["process_idx"] = pc.add(filled, pa.scalar(self._first_process, pa.int32()))

    def _shift(self, table: str, columns: dict[str, Any]) -> None:
        offset = self._relation.offset_ns
        if not offset:
            return
        for name, column in columns.items():
            if name == "timestamp" or name in ("start_ts", "end_ts"):
                columns[name] = pc.add(column, offset)
            elif name.endswith("_ts") and pa.types.is_integer(column.type):
                columns[name] = pc.if_else(pc.equal(column, 0), column, pc.add(column, offset))
            elif name == "time_intervals":
                columns[name] = _shifted_intervals(column, offset)

    def _set_clock(self, columns: dict[str, Any], rows: int) -> None:
        """What was added to a process's own clock before is added to what is added now."""
        relation = self._relation
        none = pa.nulls(rows, pa.int64())
        if not relation.is_related:
            columns["clock_offset_ns"] = columns["clock_uncertainty_ns"] = none
            return
        before = pc.fill_null(columns.get("clock_offset_ns", none), 0)
        columns["clock_offset_ns"] = pc.add(before, relation.offset_ns)
        known = pc.fill_null(columns.get("clock_uncertainty_ns", none), 0)
        uncertain = relation.uncertainty_ns
        columns["clock_uncertainty_ns"] = none if uncertain is None else pc.add(known, uncertain)
        if self._start_unix_ns is not None:
            columns["start_unix_ns"] = pa.array([self._start_unix_ns] * rows, pa.int64())


def _shifted_intervals(column: pa.Array, offset: int) -> pa.Array:
    """JSON lists of [start, end] pairs moved in time; what is none stays."""
    shifted = []
    for text in column.to_pylist():
        try:
            pairs = json.loads(text) if text else None
            moved = [[int(start) + offset, int(end) + offset] for start, end in pairs or ()]
        except (ValueError, TypeError, RecursionError, OverflowError):
            shifted.append(text)
            continue
        shifted.append(json.dumps(moved, separators=(",", ":")) if moved else text)
    return pa.array(shifted, pa.string())


def track_numbers(recording: Recording) -> list[int]:
    """Number of each track in its process, counted from 0."""
    counts: Counter[int] = Counter()
    numbers = []
    for track in recording.tracks:
        numbers.append(counts[track.process])
        counts[track.process] += 1
    return numbers


def _write_processes(
    recording: Recording, relation: Relation, first: int, start_unix_ns: int | None, writer: ProfileWriter
) -> None:
    processes, rank = recording.processes, recording.rank
    if not processes:
        return
    count = len(processes)
    offset = relation.offset_ns if relation.is_related else None
    columns = {
        "process_idx": (pa.int32(), range(first, first + count)),
        "process_id": (pa.int64(), [process.process_id for process in processes]),
        "command": (pa.string(), [process.command for process in processes]),
        "rank": (pa.int32(), [rank if process.rank is None else process.rank for process in processes]),
        "name": (pa.string(), [process.name for process in processes]),
        "host": (pa.string(), [process.host or recording.clock.host for process in processes]),
        "start_unix_ns": (pa.int64(), [start_unix_ns] * count),
        "clock_offset_ns": (pa.int64(), [offset] * count),
        "clock_uncertainty_ns": (pa.int64(), [relation.uncertainty_ns] * count),
    }
    writer.append(
        "ProcessInfo", {name: pa.array(list(column), kind) for name, (kind, column) in columns.items()}
    )


def _write_tracks(recording: Recording, first_process: int, writer: ProfileWriter) -> None:
    tracks = recording.tracks
    if not tracks:
        return
    numbers = track_numbers(recording)
    columns = {
        "track_idx": (pa.int32(), numbers),
        "process_idx": (pa.int32(), [first_process + track.process for track in tracks]),
        "name": (pa.string(), [track.name for track in tracks]),
        "kind": (pa.string(), [track.kind for track in tracks]),
        "parent_track_idx": (pa.int32(), [None if t.parent is None else numbers[t.parent] for t in tracks]),
        "device_idx": (pa.int32(), [track.device_idx for track in tracks]),
        "thread_id": (pa.int64(), [track.thread_id for track in tracks]),
        "sort_index": (pa.int64(), [track.sort_index for track in tracks]),
        "unit": (pa.string(), [track.unit for track in tracks]),
    }
    writer.append("TraceTrack", {name: pa.array(column, kind) for name, (kind, column) in columns.items()})


def _write_warnings(recordings: Sequence[Recording], related: RelatedClocks, writer: ProfileWriter) -> None:
    found = [warning for recording in recordings for warning in recording.warnings]
    found += [(sentence, "Clock") for sentence in related.warnings]
    if found:
        messages, categories = zip(*found)
        writer.append("Warning", {"message": list(messages), "category": list(categories)})
