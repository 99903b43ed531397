"""Staged rows of all files into one profile: numbered anew, on one clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.profile.importers.clocks import RelatedClocks, Relation
from neuron_tools.profile.importers.recording import LANE, Recording
from neuron_tools.profile.schema import TABLES
from neuron_tools.profile.writer import ProfileWriter

TIME_COLUMNS = frozenset({"start_ts", "end_ts", "timestamp"})


def assemble(
    recordings: Sequence[Recording], related: RelatedClocks, writer: ProfileWriter
) -> dict[str, int]:
    """Writes everything that was staged.

    Returns:
        Rows by table.
    """
    rows: Counter[str] = Counter()
    first_process, first_id = 0, Counter[str]()
    for recording, relation in zip(recordings, related.relations, strict=True):
        placed = _Placed(recording, relation, first_process, dict(first_id))
        for table in recording.row_counts:
            for batch in recording.batches(table):
                writer.append(table, placed.columns(table, batch))
                rows[table] += batch.num_rows
        _write_layout(recording, relation, first_process, related.start_unix_ns, writer)
        first_process += max(len(recording.processes), 1)
        for table, count in recording.row_counts.items():
            first_id[table] += recording.highest_ids.get(table, count)
    _write_warnings(recordings, related, writer)
    return dict(rows)


class _Placed:
    """One file's rows on their way into the profile."""

    def __init__(
        self, recording: Recording, relation: Relation, first_process: int, first_id: dict[str, int]
    ) -> None:
        self._offset = relation.offset_ns
        self._first_process = first_process
        self._first_id = first_id
        tracks = [recording.tracks[track] for track in recording.lanes]
        numbers = track_numbers(recording)
        self._process_of = np.array([first_process + track.process for track in tracks], np.int32)
        self._track_of = np.array([numbers[track] for track in recording.lanes], np.int32)

    def columns(self, table: str, batch: pa.RecordBatch) -> dict[str, Any]:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        lane = columns.pop(LANE, None)
        if lane is not None:
            lanes = lane.to_numpy()
            columns["process_idx"] = pa.array(self._process_of[lanes])
            columns["track_idx"] = pa.array(self._track_of[lanes])
        elif "process_idx" in TABLES[table].by_name:
            own = columns.get("process_idx", pa.array(np.zeros(batch.num_rows, np.int32)))
            columns["process_idx"] = pc.add(own, pa.scalar(self._first_process, pa.int32()))
        for name in TIME_COLUMNS & columns.keys():
            columns[name] = pc.add(columns[name], self._offset)
        if "start_ts" in columns and "end_ts" in columns:
            columns["duration_ns"] = pc.subtract(columns["end_ts"], columns["start_ts"])
        self._number(table, columns)
        return columns

    def _number(self, table: str, columns: dict[str, Any]) -> None:
        """Ids stay unique when files are joined, and what refers to them still does."""
        if table == "TraceSpan":
            columns["id"] = pc.add(columns["id"], self._first_id.get("TraceSpan", 0))
        if table == "Flow" and columns["in_table"][0].as_py() == "TraceSpan":
            first = self._first_id.get("TraceSpan", 0)
            for end in ("in", "out"):
                columns[f"{end}_id"] = pc.add(columns[f"{end}_id"], first)


def track_numbers(recording: Recording) -> list[int]:
    """Number of each track in its process, counted from 0."""
    counts: Counter[int] = Counter()
    numbers = []
    for track in recording.tracks:
        numbers.append(counts[track.process])
        counts[track.process] += 1
    return numbers


def _write_layout(
    recording: Recording,
    relation: Relation,
    first_process: int,
    start_unix_ns: int | None,
    writer: ProfileWriter,
) -> None:
    processes, tracks = recording.processes, recording.tracks
    rank = recording.rank
    if processes:
        writer.append(
            "ProcessInfo",
            {
                "process_idx": [first_process + number for number in range(len(processes))],
                "process_id": pa.array([process.process_id for process in processes], pa.int64()),
                "command": pa.array([process.command for process in processes], pa.string()),
                "rank": pa.array([rank if p.rank is None else p.rank for p in processes], pa.int32()),
                "name": pa.array([process.name for process in processes], pa.string()),
                "host": pa.array(
                    [process.host or recording.clock.host for process in processes], pa.string()
                ),
                "start_unix_ns": pa.array([start_unix_ns] * len(processes), pa.int64()),
                "clock_offset_ns": pa.array(
                    [relation.offset_ns if relation.is_related else None] * len(processes), pa.int64()
                ),
                "clock_uncertainty_ns": pa.array([relation.uncertainty_ns] * len(processes), pa.int64()),
            },
        )
    if tracks:
        numbers = track_numbers(recording)
        writer.append(
            "TraceTrack",
            {
                "track_idx": numbers,
                "process_idx": [first_process + track.process for track in tracks],
                "name": [track.name for track in tracks],
                "kind": [track.kind for track in tracks],
                "parent_track_idx": pa.array(
                    [None if t.parent is None else numbers[t.parent] for t in tracks], pa.int32()
                ),
                "device_idx": pa.array([track.device_idx for track in tracks], pa.int32()),
                "thread_id": pa.array([track.thread_id for track in tracks], pa.int64()),
                "sort_index": pa.array([track.sort_index for track in tracks], pa.int64()),
                "unit": pa.array([track.unit for track in tracks], pa.string()),
            },
        )


def _write_warnings(recordings: Sequence[Recording], related: RelatedClocks, writer: ProfileWriter) -> None:
    found = [warning for recording in recordings for warning in recording.warnings]
    found += [(sentence, "Clock") for sentence in related.warnings]
    if found:
        writer.append(
            "Warning",
            {"message": [message for message, _ in found], "category": [category for _, category in found]},
        )
