"""Code generation for a group that only exchanges two dimensions of short rows, such as heads and positions.

Read or written by DMA alone, each row would be a descriptor of its own, and descriptors under 512 bytes
waste DMA. So each partition takes several neighbouring rows of one matrix whole; the engines put the pieces
in their new order, and what goes back to HBM is as long as the rows of a partition together. Where the result
has the shorter rows, it is they that stay whole: then the loads are stretches and the stores are long.
"""

from __future__ import annotations

import math

import numpy as np

from neuron_tools.compiler.allocate import latest
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.halved_copy import copy_halved
from neuron_tools.compiler.codegen.slot import Transfer
from neuron_tools.compiler.codegen.space import MINIMUM_RUN_BYTES
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.graph import operands_of
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.compiler.views import Factor
from neuron_tools.frozen import frozen
from neuron_tools.records.program import Memory

LONG_BYTES = 2048
"""A partition's stretch from which DMA is near its full rate (nki_hardware section 9: at least 2 KiB)."""
NARROW = 32
"""Rows or columns of a matrix up to which its elements are exchanged as short rows are."""
LEAST_STRETCH_BYTES = 256
"""Shorter stretches of elements are slower than turning them."""
TILE_SHARE = 8
"""A tile takes at most one part in so many of a partition: a few are there at a time."""


@frozen
class Exchange:
    """Matrices of `rows` x `pieces` contiguous runs, turned into `pieces` x `rows`, and how they are tiled.

    Attributes:
        source: The value in memory.
        outer: Matrices.
        run: Elements of a piece.
        shared: Rows that a partition holds.
        backwards: The rows are the result's: the source is read by pieces.
    """

    source: int
    outer: int
    rows: int
    pieces: int
    run: int
    shared: int
    backwards: bool

    @property
    def chunks(self) -> int:
        """Stretches of rows, one for each partition of a tile."""
        return self.outer * (self.rows // self.shared)

    @property
    def elements(self) -> int:
        """Elements of a partition."""
        return self.shared * self.pieces * self.run

    @property
    def runs(self) -> tuple[int, int]:
        """Elements that a partition's loads and its stores have together."""
        whole, stretch = self.elements, self.shared * self.run
        return (stretch, whole) if self.backwards else (whole, stretch)


def find_exchange(context: Context, group: Group) -> Exchange | None:
    """The exchange that a group is, where taking several rows a partition lengthens short descriptors."""
    if len(group.operations) != 1 or group.operations[0].opcode not in ("transpose", "reshape"):
        return None
    (operand,) = operands_of(group.operations[0])
    result = group.operations[0].results[0]
    layout = context.plan.views.layout(operand)
    if layout.root < 0 or layout.root in context.residency.residents:
        return None
    if context.type_of(layout.root).dtype != context.type_of(result).dtype:
        return None
    factors = _merged(context.plan.views.factors_in_memory(group.operations[0]))
    sizes = _matrices(factors)
    if sizes is None or math.prod(sizes) != context.type_of(layout.root).element_count:
        return None
    item = context.location(layout.root).dtype.byte_count
    ways = [_tiled(context, layout.root, sizes, item, backwards) for backwards in (False, True)]
    best = max(ways, key=lambda way: way.shared)
    return best if best.shared > 1 else None


def find_narrow_exchange(context: Context, group: Group) -> Exchange | None:
    """The exchange of a transpose of matrices that would leave most of the Tensor engine's array empty."""
    sizes = _matrices(_merged(context.plan.views.factors_in_memory(group.operations[0])))
    if sizes is None or sizes[3] > 1 or min(sizes[1], sizes[2]) > NARROW:
        return None
    exchange = find_exchange(context, group)
    if exchange is None:
        return None
    item = context.location(exchange.source).dtype.byte_count
    return exchange if min(exchange.runs) * item >= LEAST_STRETCH_BYTES else None


def _merged(factors: tuple[Factor, ...]) -> list[Factor]:
    """Factors with those joined that count on in memory."""
    merged: list[Factor] = []
    for extent, stride in factors:
        if merged and merged[-1][1] == extent * stride:
            merged[-1] = (merged[-1][0] * extent, stride)
        elif extent > 1:
            merged.append((extent, stride))
    return merged


def _matrices(factors: list[Factor]) -> tuple[int, int, int, int] | None:
    """(outer, rows, pieces, run) of factors that read pieces of rows column by column; None for others."""
    if factors and factors[-1][1] != 1:
        factors = [*factors, (1, 1)]
    (outer, outer_stride), *inner = factors if len(factors) == 4 else [(1, 0), *factors]
    if len(inner) != 3:
        return None
    (pieces, piece_stride), (rows, row_stride), (run, stride) = inner
    follow = (stride, piece_stride, row_stride) == (1, run, pieces * run)
    return (outer, rows, pieces, run) if follow and outer_stride in (0, rows * row_stride) else None


def _tiled(
    context: Context, source: int, sizes: tuple[int, int, int, int], item: int, backwards: bool
) -> Exchange:
    """One direction, with rows enough for long stretches, but some for every partition; 1 row = no gain."""
    outer, rows, pieces, run = sizes
    if backwards:
        rows, pieces = pieces, rows
    core, stretch = context.core, run * item
    room = core.sbuf_bytes_per_partition // TILE_SHARE // (pieces * stretch)
    most = min(-(-LONG_BYTES // stretch), room, outer * rows // core.sbuf_partitions)
    counts = range(1, most + 1) if stretch < MINIMUM_RUN_BYTES else ()
    shared = max((count for count in counts if rows % count == 0), default=1)
    return Exchange(source, outer, rows, pieces, run, shared, backwards)


def generate_exchange_of_rows(context: Context, group: Group, exchange: Exchange) -> None:
    """Emit loads of a partition's rows, copies that put their pieces in order, and stores."""
    source, hlo = context.location(exchange.source), context.hlo(group)
    target = context.define(group.operations[0].results[0])
    partitions, item = context.core.sbuf_partitions, source.dtype.byte_count
    loop = TileLoop(context, -(-exchange.chunks // partitions), hlo)
    used = np.minimum(partitions, exchange.chunks - np.arange(loop.iterations) * partitions)
    loaded = loop.slot("rows", exchange.elements * item, source.dtype, extra_buffers=1)
    ordered = loop.slot("pieces", exchange.elements * item, source.dtype)
    size = used * exchange.elements * item
    read, written = (run * item for run in exchange.runs)
    load = Transfer(
        context.load_queue(source), Memory.HBM, Memory.SBUF, size, read, used,
        source.purpose, source.dtype, source.tensor, strided=exchange.backwards,
    )  # fmt: skip
    loop.load(loaded, load, after=source.tokens)
    copy_halved(context, loop, loaded, ordered, used, exchange.elements)
    store = Transfer(
        context.store_queue(), Memory.SBUF, Memory.HBM, size, written, used,
        target.store_purpose, target.dtype, target.tensor, strided=not exchange.backwards,
    )  # fmt: skip
    stored = loop.store(ordered, store)
    loop.emit()
    target.tokens = latest(target.tokens, loop.completion(stored))
