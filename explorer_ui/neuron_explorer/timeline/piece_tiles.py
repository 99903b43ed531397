"""Tiles of stretches that do not overlap: those at least a bucket long, and buckets with the others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_explorer.timeline.parameters import BUCKETS, TileRange
from neuron_explorer.timeline.span_tiles import SCHEMA
from neuron_profile.analysis.time.pieces import Pieces
from neuron_tools.profile.timeline.dtypes import numpy_dtype

Columns = dict[str, npt.NDArray[np.float64] | npt.NDArray[np.int64]]


def piece_columns(pieces: Pieces, tiles: TileRange, number: int, origin_ns: int) -> Columns:
    """What of the pieces lies in a tile: those at least a bucket long, and buckets with the others.

    Args:
        number: Which of the tiles, counted from 0.
        origin_ns: What the engine counts times from.
    """
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


def piece_batch(
    place: int, number: int, columns: Columns, names: pa.DictionaryArray, depth: int = 0
) -> pa.RecordBatch:
    """The columns of a tile as rows of `span_tiles.SCHEMA`.

    Args:
        place: Of the track, as the engine counts it.
        names: Of each row.
    """
    count = len(columns["start"])
    fixed = {"tile": number, "track": place, "depth": depth}
    every = columns | {name: np.full(count, value) for name, value in fixed.items()}
    arrays = {
        field.name: pa.array(every[field.name].astype(numpy_dtype(field.type)), field.type)
        for field in SCHEMA
        if field.name != "name"
    }
    arrays["name"] = names
    return pa.RecordBatch.from_arrays([arrays[field.name] for field in SCHEMA], schema=SCHEMA)


def by_tile(table: pa.Table) -> pa.Table:
    """Rows in the order in which tiles are read: by tile, track, depth, then as they stand."""
    columns = [table.column(name).to_numpy() for name in ("depth", "track", "tile")]
    return table.unify_dictionaries().combine_chunks().take(np.lexsort(columns))


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
