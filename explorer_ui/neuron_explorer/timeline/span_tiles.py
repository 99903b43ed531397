"""Tiles of spans: what the engine draws of some tracks in equal stretches of time, as Arrow record batches.

A row is one thing to draw: a span that is at least a bucket long, or a bucket with what begins in it and the
share of it that is busy. So a tile holds O(buckets) rows, whatever lies in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_explorer.timeline.parameters import BUCKETS, TileRange
from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.timeline.dtypes import columns, numpy_dtype

SCHEMA = columns(
    "tile uint8, track uint16, depth uint16, start float32, duration float32, count uint32, "
    "busy uint8, is_bucket uint8, name text, row uint32"
)
"""Columns of tiles.

`tile` counts from the first tile that was asked for. `track` is the place in the list of tracks. `start`
counts in ns from the tile's start; of a bucket, it is the bucket's. `duration` is that of the span that
shows, in ns; of a bucket, that of its longest. `count` tells how many spans begin in it, `busy` the share
of it that is busy in 255ths, `row` the row of the track's table, modulo 2**32.
"""


def span_tiles(profile: Profile, places: list[int], tiles: TileRange, origin_ns: int = 0) -> pa.Table:
    """Rows of several tiles, by tile, track, depth and time.

    Args:
        places: Tracks of spans, by their place in `Profile.tracks()`.
        origin_ns: What the engine counts times from.
    """
    return _drawn(profile, places, tiles, origin_ns, None)


def folded_tiles(profile: Profile, places: list[int], tiles: TileRange, origin_ns: int = 0) -> pa.Table:
    """The same with all depths of a track in one."""
    return _drawn(profile, places, tiles, origin_ns, 0)


def _drawn(
    profile: Profile, places: list[int], tiles: TileRange, origin_ns: int, depths: int | None
) -> pa.Table:
    if not places:
        return SCHEMA.empty_table()
    tracks = profile.tracks()
    drawn = profile.timelines(
        [tracks[place] for place in places],
        tiles.start_ns + origin_ns,
        tiles.end_ns + origin_ns,
        BUCKETS * tiles.count,
        depths=depths,
    )
    return pa.Table.from_batches([_rows(drawn, tiles, origin_ns)])


@frozen
class _Runs:
    """Neighbouring pixels of one depth that show the same span, within one tile; shape (runs,).

    Attributes:
        first: The first pixel's number in the batch.
        length: How many pixels there are.
        count: Spans that begin in them.
    """

    first: Ints
    length: Ints
    count: Ints


def _rows(drawn: pa.RecordBatch, tiles: TileRange, origin_ns: int) -> pa.RecordBatch:
    runs = _runs(drawn)
    column = {name: _values(drawn, name)[runs.first] for name in _TAKEN}
    tile, bucket = np.divmod(column["pixel"].astype(np.int64), BUCKETS)
    duration = column["span_duration_ns"]
    is_bucket = (runs.length == 1) & ((runs.count > 1) | (duration < tiles.bucket_ns))
    tile_start = tiles.start_ns + origin_ns + tile * (BUCKETS << tiles.level)
    start = np.where(is_bucket, bucket << tiles.level, column["span_start_ns"] - tile_start)
    busy = np.where(is_bucket, np.ceil(column["busy_share"] * 255), 255)
    order = np.argsort(tile, kind="stable") if tiles.count > 1 else slice(None)
    names = drawn.column("span_name")
    codes = names.indices.to_numpy()[runs.first][order]
    arrays = [
        pa.array(np.asarray(values)[order].astype(numpy_dtype(field.type)), field.type)
        for field, values in zip(
            (field for field in SCHEMA if field.name != "name"),
            (tile, column["track"], column["depth"], start, duration, runs.count, busy, is_bucket,
             column["span_row"] & 0xFFFFFFFF),
            strict=True,
        )
    ]  # fmt: skip
    arrays.insert(SCHEMA.get_field_index("name"), pa.DictionaryArray.from_arrays(codes, names.dictionary))
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


_TAKEN = ("track", "depth", "pixel", "busy_share", "span_row", "span_start_ns", "span_duration_ns")


def _runs(drawn: pa.RecordBatch) -> _Runs:
    if not drawn.num_rows:
        none = np.zeros(0, np.int64)
        return _Runs(none, none, none)
    pixel, row = _values(drawn, "pixel"), _values(drawn, "span_row")
    track, depth = _values(drawn, "track"), _values(drawn, "depth")
    begins = np.ones(drawn.num_rows, np.bool_)
    same = (row[1:] == row[:-1]) & (pixel[1:] == pixel[:-1] + 1) & (pixel[1:] % BUCKETS != 0)
    begins[1:] = ~(same & (track[1:] == track[:-1]) & (depth[1:] == depth[:-1]))
    first = np.flatnonzero(begins)
    length = np.diff(np.append(first, drawn.num_rows))
    return _Runs(first, length, np.add.reduceat(_values(drawn, "count"), first))


def _values(batch: pa.RecordBatch, name: str) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = batch.column(name).to_numpy()
    return values
