"""Tiles of the use of engines: the share of the time in which an engine is active, as a counter.

Each value is the mean over a window of `WINDOW_BUCKETS` buckets, so that it can be read at any zoom. It is of
the union of what ran: instructions that overlap count once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_explorer.timeline.counter_tiles import Rows, counter_batch
from neuron_explorer.timeline.parameters import BUCKETS, TileRange
from neuron_profile.analysis.spans import covered_before, union
from neuron_tools.arrays import Floats
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.timeline.track import Track

WINDOW_BUCKETS = 16
WINDOWS = BUCKETS // WINDOW_BUCKETS
MOST_SPANS = 200_000
"""Spans of which a union is made; of more that overlap, the busiest row tells."""
PERCENT = 100.0


def has_use(track: Track) -> bool:
    """Whether a track is of an engine that ran something."""
    return track.level == "engine" and track.spans > 0


def use_tiles(profile: Profile, places: list[int], tiles: TileRange, origin_ns: int = 0) -> pa.Table:
    """Rows of several tiles, as `counter_tiles` has them: percent, where they change and where tiles start.

    Args:
        places: Tracks that `has_use` says yes to, by their place in `Profile.tracks()`.
        origin_ns: What the engine counts times from.
    """
    count = WINDOWS * tiles.count
    edges = (
        tiles.start_ns + origin_ns + np.arange(count + 1, dtype=np.int64) * tiles.bucket_ns * WINDOW_BUCKETS
    )
    tracks = profile.tracks()
    shares = _drawn(profile, places, edges)
    for row, place in enumerate(places):
        if tracks[place].depths > 1:
            exact = _of_union(profile, tracks[place], edges)
            shares[row] = shares[row] if exact is None else exact
    whole = (PERCENT * shares).reshape(len(places), tiles.count, WINDOWS)
    return pa.Table.from_batches(
        [counter_batch([_rows(places, whole[:, tile], tile) for tile in range(tiles.count)])]
    )


def _drawn(profile: Profile, places: list[int], edges: npt.NDArray[np.int64]) -> Floats:
    """The busy share of each window, (places, windows), from the index: of the busiest row of a track."""
    shares = np.zeros((len(places), len(edges) - 1))
    if places:
        tracks = profile.tracks()
        chosen = [tracks[place] for place in places]
        drawn = profile.timelines(chosen, int(edges[0]), int(edges[-1]), len(edges) - 1, depths=0)
        row = np.searchsorted(places, drawn.column("track").to_numpy())
        shares[row, drawn.column("pixel").to_numpy()] = drawn.column("busy_share").to_numpy()
    return np.clip(shares, 0.0, 1.0)


def _of_union(profile: Profile, track: Track, edges: npt.NDArray[np.int64]) -> Floats | None:
    """The share of each window in which anything ran; None where a range holds too much."""
    found = profile.spans(track, int(edges[0]), int(edges[-1]), limit=MOST_SPANS)
    if found.num_rows >= MOST_SPANS:
        return None
    starts = found.column("start_ns").to_numpy()
    busy = covered_before(union(starts, starts + found.column("duration_ns").to_numpy()), edges)
    shares: Floats = np.diff(busy) / np.maximum(np.diff(edges), 1)
    return shares


def _rows(places: list[int], values: Floats, tile: int) -> Rows:
    """Rows of one tile: a value holds until the next."""
    is_new = np.concatenate([np.ones((len(places), 1), bool), values[:, 1:] != values[:, :-1]], axis=1)
    row, window = np.nonzero(is_new)
    shown = values[row, window]
    return {
        "tile": np.full(1, tile),
        "track": np.asarray(places, np.int64)[row],
        "bucket": window * WINDOW_BUCKETS,
        "count": np.ones(len(row), np.int64),
        **dict.fromkeys(("least", "greatest", "mean"), shown),
    }
