"""Tiles of counters: least, greatest and mean of the samples in each bucket, as Arrow record batches."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neuron_explorer.timeline.parameters import BUCKETS, TileRange
from neuron_tools.profile.reader import Profile

SCHEMA = pa.schema(
    [
        ("track", pa.uint16()),
        ("bucket", pa.uint16()),
        ("count", pa.uint32()),
        ("least", pa.float64()),
        ("greatest", pa.float64()),
        ("mean", pa.float64()),
    ]
)
"""`bucket` counts from the tile's start; a bucket that is left out has the last value before it."""


def counter_tiles(profile: Profile, places: list[int], tiles: TileRange, origin_ns: int = 0) -> pa.Table:
    """Rows of several tiles, one chunk for each tile, by track and time.

    Args:
        places: Counters, by their place in `Profile.tracks()`.
        origin_ns: What the engine counts times from.
    """
    tracks = profile.tracks()
    drawn = profile.timelines(
        [tracks[place] for place in places],
        tiles.start_ns + origin_ns,
        tiles.end_ns + origin_ns,
        BUCKETS * tiles.count,
    )
    tile, bucket = np.divmod(drawn.column("pixel").to_numpy(), BUCKETS)
    order = np.argsort(tile, kind="stable")
    columns = [drawn.column("track").to_numpy(), bucket]
    columns += [drawn.column(name).to_numpy() for name in ("count", "least", "greatest", "mean")]
    arrays = [
        pa.array(values[order].astype(field.type.to_pandas_dtype()), field.type)
        for field, values in zip(SCHEMA, columns, strict=True)
    ]
    rows = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
    ends = np.cumsum(np.bincount(tile, minlength=tiles.count)).tolist()
    slices = zip([0, *ends[:-1]], ends, strict=True)
    return pa.Table.from_batches([rows.slice(first, end - first) for first, end in slices], SCHEMA)
