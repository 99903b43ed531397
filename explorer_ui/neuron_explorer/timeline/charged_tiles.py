"""Tiles of charged time: of a track of operations, which one each moment is charged to, without overlap.

A track's spans are envelopes: from an operation's first to its last instruction, whatever ran between them.
Here a row is a stretch that an operation is charged with, by the one definition of time
(`neuron_profile.analysis.time`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_explorer.timeline.last_results import LastResults
from neuron_explorer.timeline.parameters import TileRange
from neuron_explorer.timeline.piece_tiles import by_tile, piece_batch, piece_columns
from neuron_explorer.timeline.span_tiles import SCHEMA, folded_tiles
from neuron_profile.analysis.time.charged_track import TABLES, ChargedTrack
from neuron_profile.analysis.time.core_window import core_window
from neuron_profile.analysis.time.pieces import Pieces
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.timeline.track import Track

KEPT = 8


def is_charged(track: Track) -> bool:
    """Whether a track's spans are operations that time is charged to."""
    return track.level in TABLES and track.table == TABLES[track.level][0]


class ChargedTiles:
    """Draws charged time; the operations of the last few tracks are kept."""

    def __init__(self) -> None:
        self._kept = LastResults[dict[str, ChargedTrack]](KEPT)

    def of(self, profile: Profile, place: int) -> ChargedTrack:
        """What time is charged to on a track."""
        tracks = profile.tracks()
        track = tracks[place]
        if track.replica_of:
            track = next(one for one in tracks if one.id == track.replica_of)
        key = (profile, track.process_idx, track.core_idx or 0)
        return self._kept.of(key, lambda: _charged(profile, key[1:]))[track.level]

    def prepare(self, profile: Profile, tiles: TileRange | None, origin_ns: int) -> None:
        """Read what every range of the first core's tracks needs, and what they have in some tiles."""
        tracks = profile.tracks()
        first = next((track for track in tracks if is_charged(track)), None)
        for place, track in enumerate(tracks):
            if first and is_charged(track) and track.core_idx == first.core_idx:
                charged = self.of(profile, place)
                charged.prepare()
                if tiles is not None:
                    charged.between(tiles.start_ns + origin_ns, tiles.end_ns + origin_ns)

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
                    _batch(place, number, pieces, tiles, origin_ns, track) for number in range(tiles.count)
                ]
            elif rows is None:
                parts += folded_tiles(profile, [place], tiles, origin_ns).to_batches()
        return by_tile(pa.Table.from_batches(parts, SCHEMA))


def _batch(
    place: int, number: int, pieces: Pieces, tiles: TileRange, origin_ns: int, track: ChargedTrack
) -> pa.RecordBatch:
    columns = piece_columns(pieces, tiles, number, origin_ns)
    return piece_batch(place, number, columns, track.names(columns["row"].astype(np.int64)))


def _charged(profile: Profile, core: tuple[int, int]) -> dict[str, ChargedTrack]:
    window = core_window(profile, core)
    return {level: ChargedTrack(window, level) for level in TABLES}
