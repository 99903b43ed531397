"""Block dimensions: every block of a tensor becomes a buffer of its own, with its own life and place.

A block dimension is logical: the compiler decides how many physical tiles exist (NKI direct allocation guide,
background). A tensor of which some instruction touches several blocks at once stays whole.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.backend.body import BUFFER, FIRST_LINE, LAST_LINE, Body, used_regions


def split_blocks(body: Body) -> Body:
    """The body with a buffer for each block."""
    blocks = np.maximum(body.buffers.lines // np.maximum(body.buffers.partitions, 1), 1)
    split = (blocks > 1) & body.buffers.on_chip
    if not split.any():
        return body
    regions = body.regions.astype(np.int64)
    buffer, partitions = regions[:, BUFFER], np.maximum(body.buffers.partitions[regions[:, BUFFER]], 1)
    first, last = regions[:, FIRST_LINE] // partitions, (regions[:, LAST_LINE] - 1) // partitions
    used = used_regions(body.rows)
    split[buffer[used[first[used] != last[used]]]] = False
    counts = np.where(split, blocks, 1)
    start = np.cumsum(counts) - counts
    moved = split[buffer]
    regions[:, BUFFER] = start[buffer] + np.where(moved, first, 0)
    for column in (FIRST_LINE, LAST_LINE):
        regions[:, column] -= np.where(moved, first * partitions, 0)
    return _with_blocks(replace(body, regions=regions.astype(np.int32)), split, counts, start)


def _with_blocks(body: Body, split: np.ndarray, counts: Ints, start: Ints) -> Body:
    whole = np.repeat(np.arange(len(counts)), counts)
    block = np.arange(len(whole)) - start[whole]
    buffers = body.buffers.take(whole)
    parts = split[whole]
    buffers.lines[parts] = buffers.partitions[parts]
    placed = parts & (buffers.address >= 0)
    buffers.address[placed] += (block * buffers.pitch_bytes)[placed]
    kept = {}
    for number, places in body.block_addresses.items():
        if split[number]:
            here = slice(int(start[number]), int(start[number] + counts[number]))
            buffers.address[here] = np.array(places, np.int64)[block[here] % len(places)]
        else:
            kept[int(start[number])] = places
    return replace(body, buffers=buffers, block_addresses=kept)
