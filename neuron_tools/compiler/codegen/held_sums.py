"""Sums of a long contraction that stay in SBUF while it comes in parts.

PSUM holds the sums of a few tiles. Where neither operand fits SBUF along the whole contraction (gradients of
weights over many tokens, of what meets a vocabulary), few tiles at a time would load both operands time and
again. So the sums of many rows stay in SBUF, in fp32: each part of the contraction meets all of them, and the
Vector engine adds what leaves PSUM. Each operand is then loaded as often as the other one has blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from neuron_tools.arrays import Ints
from neuron_tools.compiler.codegen.operand_blocks import Blocking
from neuron_tools.compiler.codegen.slot import Slot
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.records.program import DType, Engine, Opcode

HELD_DEPTHS = (4, 8, 16)
"""Tiles of the contraction in a part: fewer would leave the Vector engine no time to add, more no room."""
LEAST_HELD_ROWS = 4
"""Row tiles from which on sums are worth more in SBUF than in PSUM, which holds as many."""


def held_blockings(row_tiles: int, column_tiles: int) -> Iterator[Blocking]:
    """Blocks of a product whose sums stay in SBUF: about equal ones, most rows first.

    Args:
        row_tiles: Stationary tiles of the whole product.
        column_tiles: Moving tiles of a block of columns, as PSUM holds twice.
    """
    counts = {-(-row_tiles // blocks) for blocks in range(1, row_tiles // LEAST_HELD_ROWS + 1)}
    for rows in sorted(counts, reverse=True):
        for columns in range(column_tiles, 0, -1):
            for depth in HELD_DEPTHS:
                yield Blocking(1, columns, depth, rows, held_rows=rows)


def add_up(
    loop: TileLoop, sums: Sequence[Slot], widths: Sequence[Ints], rows: Ints, *, chunk: Ints, version: Ints,
    blocking: Blocking, bank_columns: int,
) -> list[Slot]:  # fmt: skip
    """Add the sums of a part of the contraction to those of the parts before.

    Args:
        loop: Where steps go.
        sums: A PSUM slot for each moving tile.
        widths: (iterations,) columns of each.
        rows: (iterations,) rows.
        chunk: (iterations,) number of the part.
        version: (iterations,) number of the row tile among those of all blocks.
        blocking: Blocks of the product.
        bank_columns: Columns of a moving tile.

    Returns:
        The slots of the sums so far.
    """
    held = []
    for psum, width in zip(sums, widths):
        slot = loop.slot(
            "held sums", bank_columns * DType.F32.byte_count, DType.F32, version=version,
            least_buffers=blocking.held_rows,
        )  # fmt: skip
        live = (rows > 0) & (width > 0)
        loop.step(Engine.VECTOR, Opcode.TENSOR_COPY, reads=(psum,), writes=(slot,), partitions=rows,
                  elements=width, active=live & (chunk == 0))  # fmt: skip
        loop.step(Engine.VECTOR, Opcode.TENSOR_TENSOR, reads=(psum, slot), writes=(slot,), partitions=rows,
                  elements=width, active=live & (chunk > 0))  # fmt: skip
        held.append(slot)
    return held
