"""Tiles of charged time: of a track of operations, which one each moment is charged to, without overlap.

A track's spans are envelopes: from an operation's first to its last instruction, whatever ran between them.
Here a row is a stretch that an operation is charged with, by the one definition of time
(`neuron_profile.analysis.time`).
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_explorer.timeline.parameters import BUCKETS, TileRange
from neuron_explorer.timeline.span_tiles import SCHEMA, folded_tiles
from neuron_profile.analysis.time.charged_track import TABLES, ChargedTrack, CoreWindow
from neuron_profile.analysis.time.pieces import Pieces
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.timeline.track import Track

KEPT = 8
Columns = dict[str, npt.NDArray[np.float64] | npt.NDArray[np.int64]]


def is_charged(track: Track) -> bool:
    """Whether a track's spans are operations that time is charged to."""
    return track.level in TABLES and track.table == TABLES[track.level][0]


class ChargedTiles:
    """Draws charged time; the operations of the last few tracks are kept."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[tuple[Profile, int, int], dict[str, ChargedTrack]] = OrderedDict()

    def of(self, profile: Profile, place: int) -> ChargedTrack:
        """What time is charged to on a track."""
        tracks = profile.tracks()
        track = tracks[place]
        if track.replica_of:
            track = next(one for one in tracks if one.id == track.replica_of)
        key = (profile, track.process_idx, track.core_idx or 0)
        with self._lock:
            if key not in self._kept:
                window = CoreWindow(profile, key[1:])
                self._kept[key] = {level: ChargedTrack(window, level) for level in TABLES}
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return self._kept[key][track.level]

    def tiles(
        self,
        profile: Profile,
        places: list[int],
        tiles: TileRange,
        origin_ns: int = 0,
        rows: dict[int, npt.NDArray[np.int64]] | None = None,
    ) -> pa.Table:
        """Rows of `span_tiles.SCHEMA`, all of depth 0; envelopes where a range holds too much to divide.

        Args:
            places: Tracks that `is_charged` says yes to, by their place in `Profile.tracks()`.
            origin_ns: What the engine counts times from.
            rows: Rows of each track's table that are drawn; None for all. Then nothing is drawn where a range
                holds too much.
        """
        parts = []
        for place in places:
            track = self.of(profile, place)
            pieces = track.between(tiles.start_ns + origin_ns, tiles.end_ns + origin_ns)
            if pieces is not None and rows is not None:
                pieces = pieces.chosen(np.isin(pieces.key, rows.get(place, np.zeros(0, np.int64))))
            if pieces is not None:
                parts += [
                    _batch(place, number, _columns(pieces, tiles, number, origin_ns), track)
                    for number in range(tiles.count)
                ]
            elif rows is None:
                parts += folded_tiles(profile, [place], tiles, origin_ns).to_batches()
        return _by_tile(pa.Table.from_batches(parts, SCHEMA))


def _by_tile(table: pa.Table) -> pa.Table:
    """Rows in the order in which tiles are read: by tile, then track."""
    order = np.lexsort((table.column("track").to_numpy(), table.column("tile").to_numpy()))
    return table.unify_dictionaries().combine_chunks().take(order)


def _columns(pieces: Pieces, tiles: TileRange, number: int, origin_ns: int) -> Columns:
    """What of the pieces lies in a tile: those at least a bucket long, and buckets with the others."""
    base = tiles.start_ns + origin_ns + (number * BUCKETS << tiles.level)
    end_ns = base + (BUCKETS << tiles.level)
    low = int(np.searchsorted(pieces.end_ns, base, "right"))
    high = int(np.searchsorted(pieces.start_ns, end_ns, "left"))
    start, end, row = pieces.start_ns[low:high] - base, pieces.end_ns[low:high] - base, pieces.key[low:high]
    is_wide = end - start >= tiles.bucket_ns
    wide = _wide(start[is_wide], end[is_wide], row[is_wide])
    kept = ~is_wide & (start >= 0)
    narrow = _buckets(start[kept], end[kept], row[kept], tiles)
    order = np.argsort(np.concatenate([wide["start"], narrow["start"]]), kind="stable")
    return {name: np.concatenate([wide[name], narrow[name]])[order] for name in wide}


def _wide(
    start: npt.NDArray[np.float64], end: npt.NDArray[np.float64], row: npt.NDArray[np.int64]
) -> Columns:
    """Pieces that are drawn as they are; one counts in the tile in which it begins."""
    every = np.full(len(start), 255, np.int64)
    begins = (start >= 0).astype(np.int64)
    return {
        "start": start, "duration": end - start, "count": begins, "busy": every,
        "is_bucket": np.zeros(len(start), np.int64), "row": row,
    }  # fmt: skip


def _buckets(
    start: npt.NDArray[np.float64],
    end: npt.NDArray[np.float64],
    row: npt.NDArray[np.int64],
    tiles: TileRange,
) -> Columns:
    """Buckets with how many pieces begin in each, how much of it they take, and the longest of them."""
    length = end - start
    bucket = start.astype(np.int64) >> tiles.level
    order = np.lexsort((length, bucket))
    used, first = np.unique(bucket[order], return_index=True)
    longest = order[np.append(first[1:], len(order)) - 1] if len(order) else order
    busy_ns = np.bincount(bucket, length, minlength=BUCKETS)[used]
    return {
        "start": used << tiles.level,
        "duration": length[longest],
        "count": np.bincount(bucket, minlength=BUCKETS)[used],
        "busy": np.ceil(np.minimum(busy_ns / tiles.bucket_ns, 1) * 255),
        "is_bucket": np.ones(len(used), np.int64),
        "row": row[longest],
    }


def _batch(place: int, number: int, columns: Columns, track: ChargedTrack) -> pa.RecordBatch:
    count = len(columns["start"])
    fixed = {"tile": number, "track": place, "depth": 0}
    every = columns | {name: np.full(count, value) for name, value in fixed.items()}
    arrays = {
        field.name: pa.array(every[field.name].astype(field.type.to_pandas_dtype()), field.type)
        for field in SCHEMA
        if field.name != "name"
    }
    arrays["name"] = track.names(columns["row"].astype(np.int64))
    return pa.RecordBatch.from_arrays([arrays[field.name] for field in SCHEMA], schema=SCHEMA)
