"""Code generation for transposes that move the innermost dimension.

Two-byte types are turned by DMA on the way; wider ones pass the Tensor engine in 128 x 128 blocks
through PSUM. Either way the source is read in long pieces and the result written in long pieces.
"""

from __future__ import annotations

import numpy as np

from neuron_tools.compiler.allocate import latest
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.location import Location
from neuron_tools.compiler.codegen.slot import Transfer
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode

ROWS_BY_DMA = 512
"""Rows that one load by DMA turns: as many elements of each column are stored together."""
BLOCKS_PER_TILE = 8
"""128-column blocks that one load brings: long descriptors, and work enough to hide the load."""


def generate_transpose(context: Context, group: Group) -> None:
    """Emit a transpose as matrices of rows x columns, the columns being the source's last axis.

    Unit dimensions have no part in the order of memory.
    """
    operation = group.operations[0]
    source, result = operation.operands[0], operation.results[0]
    shape = context.type_of(source).shape
    permutation = tuple(operation.attributes["permutation"])
    hlo = context.hlo(group)
    context.define(result)
    if not shape or context.type_of(source).element_count == 0:
        return
    columns = next((extent for extent in reversed(shape) if extent > 1), 1)
    rows = next((shape[axis] for axis in reversed(permutation) if shape[axis] > 1), 1)
    outer = context.type_of(source).element_count // max(1, columns * rows)
    turn_matrices(context, context.location(source), context.locations[result], (outer, rows, columns), hlo)


def turn_matrices(
    context: Context, location: Location, target: Location, sizes: tuple[int, int, int], hlo: int
) -> None:
    """Turn `outer` matrices of rows x columns; one iteration covers several 128-column blocks.

    DMA turns many rows at once, so that what is stored of each column is long; the Tensor engine turns 128.
    The target's tokens are set to what completes it.
    """
    outer, rows, columns = sizes
    size = context.core.tensor_columns
    dtype = chip_dtype(location.type.dtype)
    by_dma = dtype.byte_count <= 2
    height = min(rows, ROWS_BY_DMA) if by_dma else size
    row_tiles = -(-rows // height)
    blocks = min(BLOCKS_PER_TILE, -(-columns // size))
    column_tiles = -(-columns // (size * blocks))
    loop = TileLoop(context, outer * row_tiles * column_tiles, hlo)
    index = np.arange(loop.iterations)
    tall = np.minimum(height, rows - index // column_tiles % row_tiles * height)
    wide = np.minimum(size * blocks, columns - index % column_tiles * size * blocks)
    item = location.dtype.byte_count
    loaded = loop.slot("rows", height * blocks * dtype.byte_count, dtype, extra_buffers=1)
    load = Transfer(
        context.load_queue(location), Memory.HBM, Memory.SBUF, tall * wide * item, int(wide.max()) * item,
        np.minimum(wide, size) if by_dma else tall, location.purpose, location.dtype, location.tensor,
        transpose=by_dma,
    )  # fmt: skip
    loop.load(loaded, load, after=location.tokens)
    turned = loaded
    if not by_dma:
        turned = loop.slot("columns", blocks * size * dtype.byte_count, dtype)
        per_bank = max(1, context.core.psum_bank_bytes // (size * 4))
        for first in range(0, blocks, per_bank):
            psum = loop.slot("turning", context.core.psum_bank_bytes, DType.F32, memory=Memory.PSUM)
            held = range(first, min(first + per_bank, blocks))
            for block in held:
                width = np.clip(wide - block * size, 0, size)
                loop.step(Engine.TENSOR, Opcode.LDWEIGHTS, reads=(loaded,), partitions=tall, columns=width,
                          active=width > 0, flags=Flag.TRANSPOSE)  # fmt: skip
                loop.step(Engine.TENSOR, Opcode.TRANSPOSE, reads=(loaded,), writes=(psum,), partitions=tall,
                          columns=width, elements=tall, active=width > 0, flags=Flag.TRANSPOSE,
                          output_dtype=dtype)  # fmt: skip
            width = np.clip(wide - first * size, 0, size)
            engine = Engine.VECTOR if first // per_bank % 2 == 0 else Engine.SCALAR
            loop.step(engine, Opcode.TENSOR_COPY, reads=(psum,), writes=(turned,), partitions=width,
                      elements=tall * len(held), active=width > 0, accumulates=True)  # fmt: skip
    store = Transfer(
        context.store_queue(), Memory.SBUF, Memory.HBM, tall * wide * item, int(tall.max()) * item,
        np.minimum(wide, size), target.store_purpose, target.dtype, target.tensor,
    )  # fmt: skip
    stored = loop.store(turned, store)
    loop.emit()
    target.tokens = latest(target.tokens, loop.completion(stored))
