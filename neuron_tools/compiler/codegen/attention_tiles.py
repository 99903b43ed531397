"""Which queries meet which keys: the iterations of an attention block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuron_tools.arrays import Bools, Ints
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.views import contiguous
from neuron_tools.frozen import frozen
from neuron_tools.simulator.dma_costs import stretch_time_ns

TOGETHER_SHARE = 16
"""Rows of several heads take at most one part in so many of a partition, tiles that wait included."""
GOOD_TIME = 1.1
"""A row may take so many times its least time: more heads together would save less than their room costs."""


@frozen
class Shapes:
    """`batch` heads, each `shared` with the same keys: `rows` queries x `columns` keys; sizes of a head."""

    batch: int
    shared: int
    rows: int
    columns: int
    depth: int
    width: int

    def row_tiles(self, tile: int) -> int:
        """Tiles of queries of a head."""
        return -(-self.rows // tile)


@dataclass(frozen=True)
class Iterations:
    """Which head, tile of queries and chunk of keys each iteration is; all arrays (iterations,)."""

    head: Ints
    row: Ints
    chunk: Ints
    tile: Ints  # number of the (head, row) pair
    first: Bools  # of its tile
    last: Bools
    rows: Ints  # queries in the tile
    width: Ints  # keys in the chunk that are not all hidden
    masked: Bools  # some keys are hidden from some queries


def iterations(shapes: Shapes, tile: int, chunk: int, is_causal: bool) -> Iterations:
    """The iterations of a block; a causal one ends each tile at its own diagonal."""
    tiles, chunks = shapes.row_tiles(tile), -(-shapes.columns // chunk)
    last_row = np.minimum((np.arange(tiles) + 1) * tile, shapes.rows) - 1
    needed = np.minimum(last_row // chunk + 1, chunks) if is_causal else np.full(tiles, chunks)
    per_tile = np.tile(needed, shapes.batch)
    number = np.repeat(np.arange(len(per_tile)), per_tile)
    row = number % tiles
    position = np.arange(len(number)) - np.repeat(np.cumsum(per_tile) - per_tile, per_tile)
    width = np.minimum(chunk, shapes.columns - position * chunk)
    masked = np.zeros(len(number), bool)
    if is_causal:
        end = (row + 1) * tile
        masked = (position * chunk + width) > row * tile + 1
        width = np.minimum(width, np.maximum(end - position * chunk, 1))
    return Iterations(
        head=number // tiles,
        row=row,
        chunk=position,
        tile=number,
        first=position == 0,
        last=position == per_tile[number] - 1,
        rows=np.minimum(tile, shapes.rows - row * tile),
        width=width,
        masked=masked,
    )


def first_seen(contents: Ints) -> Bools:
    """(iterations,) where each content appears for the first time."""
    seen = np.zeros(len(contents), bool)
    seen[np.unique(contents, return_index=True)[1]] = True
    return seen


def heads_together(context: Context, value: int, columns: int, tiles: int) -> int:
    """How many heads' rows lie beside each other and make up what DMA moves well; 1 where they do not.

    Args:
        context: Where the value is known.
        value: (..., heads, rows, columns) operand.
        columns: Elements of a row of one head.
        tiles: Tiles of rows that are on chip at a time.
    """
    beside, core = heads_beside(context, value, columns), context.core
    item = chip_dtype(context.type_of(value).dtype).byte_count
    room = core.sbuf_bytes_per_partition // TOGETHER_SHARE
    counts = [count for count in range(1, beside + 1) if beside % count == 0]
    fitting = [count for count in counts if count * tiles * columns * item <= room] or counts[:1]
    per_head = {
        count: stretch_time_ns(core, count * columns * item, strided=count < beside) / count
        for count in fitting
    }
    quick = GOOD_TIME * min(per_head.values())
    return next(count for count in fitting if per_head[count] <= quick)


def heads_beside(context: Context, value: int, columns: int) -> int:
    """Heads whose rows lie beside each other in HBM."""
    factors = context.plan.views.layout(value).dims[-3]
    return factors[-1][0] if factors and factors[-1][1] == columns else 1


def shared_heads(context: Context, value: int, batch: int) -> int:
    """Consecutive heads that read the same keys: trailing repeated factors of the batch axes."""
    layout = context.plan.views.layout(value)
    shape = context.type_of(value).shape
    shared, left = 1, batch
    for axis in range(len(shape) - 3, -1, -1):
        factors = layout.dims[axis] or contiguous((shape[axis],))[0]
        for extent, stride in reversed(factors):
            if stride != 0:
                return shared
            shared *= extent
            left //= extent
    return shared if left else 1
