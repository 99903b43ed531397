"""Tiles of counters: least, greatest and mean of the samples in each bucket, as Arrow record batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_explorer.timeline.parameters import BUCKETS, TileRange
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.timeline.dtypes import columns, numpy_dtype
from neuron_tools.profile.timeline.track import Track

SCHEMA = columns(
    "tile uint8, track uint16, bucket uint16, count uint32, least float64, greatest float64, mean float64"
)
"""`bucket` counts from the tile's start; a bucket that is left out has the last value before it."""


SEARCH_PIXELS = 512


def counter_tiles(profile: Profile, places: list[int], tiles: TileRange, origin_ns: int = 0) -> pa.Table:
    """Rows of several tiles, by tile, track and time.

    A value holds until the next sample: where a tile does not begin with one, its first row is the value from
    before it, with a count of 0.

    Args:
        places: Counters, by their place in `Profile.tracks()`.
        origin_ns: What the engine counts times from.
    """
    if not places:
        return SCHEMA.empty_table()
    start_ns = tiles.start_ns + origin_ns
    tracks = profile.tracks()
    chosen = [tracks[place] for place in places]
    drawn = profile.timelines(chosen, start_ns, tiles.end_ns + origin_ns, BUCKETS * tiles.count)
    columns = {name: drawn.column(name).to_numpy() for name in drawn.schema.names}
    tile, bucket = np.divmod(columns.pop("pixel"), BUCKETS)
    held = {place: value_before(profile, tracks[place], start_ns) for place in places}
    parts = []
    for number in range(tiles.count):
        inside = tile == number
        rows = {name: values[inside] for name, values in columns.items()} | {"bucket": bucket[inside]}
        parts.append(_with_held(rows, held) | {"tile": np.full(1, number)})
        last = np.flatnonzero(np.diff(rows["track"], append=-1))
        held |= {int(rows["track"][row]): float(rows["mean"][row]) for row in last}
    return pa.Table.from_batches([counter_batch(parts)])


def value_before(profile: Profile, track: Track, time_ns: int) -> float | None:
    """The value of a counter just before a time, looked for ever nearer; None before its first sample."""
    low, high = track.start_ns, min(time_ns, track.end_ns + 1)
    while low < high:
        pixels = min(SEARCH_PIXELS, high - low)
        found = profile.timeline(track, low, high, pixels)
        if not found.num_rows:
            return None
        pixel, count = found.column("pixel")[-1].as_py(), found.column("count")[-1].as_py()
        if count == 1 or high - low <= pixels:
            return float(found.column("mean")[-1].as_py())
        length = high - low
        low, high = low + pixel * length // pixels, low + -(-(pixel + 1) * length // pixels)
    return None


Rows = dict[str, npt.NDArray[Any]]


def _with_held(rows: Rows, held: dict[int, float | None]) -> Rows:
    """Rows of a tile, with the values that hold at its start where it does not begin with a sample."""
    begins = set(rows["track"][rows["bucket"] == 0].tolist())
    before = {place: value for place, value in held.items() if value is not None and place not in begins}
    values = np.array(list(before.values()), np.float64)
    none = np.zeros(len(before), np.int64)
    first: Rows = {"track": np.array(list(before), np.int64), "bucket": none, "count": none}
    first |= dict.fromkeys(("least", "greatest", "mean"), values)
    joined = {name: np.concatenate([first[name], rows[name]]) for name in SCHEMA.names if name != "tile"}
    order = np.lexsort((joined["bucket"], joined["track"]))
    return {name: column[order] for name, column in joined.items()}


def counter_batch(parts: list[Rows]) -> pa.RecordBatch:
    """One batch of the rows of all tiles, each with the columns of `SCHEMA`; `tile` has one value."""
    tile = [np.repeat(rows["tile"], len(rows["track"])) for rows in parts]
    columns = {name: [rows[name] for rows in parts] for name in SCHEMA.names if name != "tile"} | {
        "tile": tile
    }
    arrays = [
        pa.array(np.concatenate(columns[field.name]).astype(numpy_dtype(field.type)), field.type)
        for field in SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
