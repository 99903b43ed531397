"""Tracks of ranks that were simulated but did not run: those of the ranks that they are like, by reference.

Nothing of them is stored: a track of a replica names the track that has its spans, and is drawn from that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neuron_tools.frozen import frozen
from neuron_tools.profile.store.remote import source_of
from neuron_tools.profile.timeline.track import Track, drawing_order

_COLUMNS = ["process_idx", "rank", "replica_of_rank", "name"]


@frozen
class Replica:
    """A process that did not run.

    Attributes:
        like: The process_idx of the one that did.
    """

    process_idx: int
    rank: int
    name: str
    like: int


def replicas_in(parts: Sequence[Path]) -> list[Replica]:
    """The processes in the parts of ProcessInfo that did not run."""
    rows = [row for part in parts for row in _rows(part)]
    ran = {row["rank"]: row["process_idx"] for row in rows if row["replica_of_rank"] is None}
    return [
        Replica(row["process_idx"], row["rank"], row["name"] or "", ran[row["replica_of_rank"]])
        for row in rows
        if row["replica_of_rank"] in ran
    ]


def _rows(part: Path) -> list[dict[str, Any]]:
    try:
        file = pq.ParquetFile(source_of(part))
        if not set(_COLUMNS) <= set(file.schema_arrow.names):
            return []
        rows: list[dict[str, Any]] = file.read(columns=_COLUMNS).to_pylist()
    except (OSError, pa.ArrowException):
        return []
    return rows


def with_replicas(tracks: Sequence[Track], replicas: Sequence[Replica]) -> tuple[Track, ...]:
    """The tracks, and for each replica those that it lacks of the process that it is like.

    Args:
        tracks: In drawing order; so is the result.
    """
    if not replicas:
        return tuple(tracks)
    by_process: dict[int, list[Track]] = {}
    for track in tracks:
        by_process.setdefault(track.process_idx, []).append(track)
    own = {track.id for track in tracks}
    made = [
        copy
        for replica in replicas
        for track in by_process.get(replica.like, ())
        for copy in [_of_replica(track, replica)]
        if copy.id not in own
    ]
    return tuple(sorted([*tracks, *made], key=drawing_order))


def _of_replica(track: Track, replica: Replica) -> Track:
    _, slash, tail = track.id.partition("/")
    heading = f"rank {replica.rank}: {replica.name}"
    return replace(
        track,
        id=f"p{replica.process_idx}{slash}{tail}",
        headings=(heading, *track.headings[1:]),
        process_idx=replica.process_idx,
        rank=replica.rank,
        replica_of=track.id,
    )


class TrackPlaces:
    """Where each track that is shown stands in the index, and back.

    Args:
        shown: All tracks.
        stored: Those of the index.
    """

    def __init__(self, shown: Sequence[Track], stored: Sequence[Track]) -> None:
        by_id = {track.id: place for place, track in enumerate(stored)}
        self._stored = [by_id[track.replica_of or track.id] for track in shown]
        self._shown = {
            place: shown_place
            for shown_place, (place, track) in enumerate(zip(self._stored, shown, strict=True))
            if not track.replica_of
        }

    def stored(self, shown: int) -> int:
        """The place in the index of a track that is shown."""
        return self._stored[shown]

    def shown(self, batch: pa.RecordBatch, wanted: Sequence[int]) -> pa.RecordBatch:
        """What the index drew, with a `track` of the shown tracks; once for each that was wanted.

        Args:
            batch: Drawn for the stored tracks of `wanted`, each once.
        """
        column = batch.schema.get_field_index("track")
        track = batch.column(column).to_numpy()
        order = np.argsort(track, kind="stable")
        first = np.searchsorted(track[order], np.arange(track.max(initial=0) + 2))
        stored = [self._stored[place] for place in wanted]
        parts = [
            order[first[place] : first[place + 1]] if place + 1 < len(first) else order[:0]
            for place in stored
        ]
        rows = np.concatenate([np.zeros(0, np.int64), *parts])
        names = np.repeat(np.asarray(wanted, np.int32), [len(part) for part in parts])
        taken = batch.take(pa.array(rows, pa.int64()))
        return taken.set_column(column, batch.schema.field(column), pa.array(names, pa.int32()))

    def found(self, table: pa.Table) -> pa.Table:
        """A table with a column `track` of the index, with the shown tracks instead."""
        column = table.schema.get_field_index("track")
        places = [self._shown[place] for place in table.column(column).to_pylist()]
        return table.set_column(column, table.schema.field(column), pa.array(places, pa.int32()))
