"""Products of few rows whose other side has the batches next to one another in memory, as one product.

The cache of a decoder is [position, batch, head, 128] or the like: of one batch only short rows lie
together, and short rows load slowly. So neighbouring batches run as one product. Where the contraction is
innermost (queries and keys) the rows stand on the diagonal of a wider left operand; where it is not (weights
and values) each row meets the columns of all batches, and keeps its own.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neuron_tools.arrays import Bools, Ints
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.operands import Operand, Sizes
from neuron_tools.compiler.codegen.slot import Slot
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.frozen import frozen
from neuron_tools.records.program import DType, Engine, Opcode

FULL_RATE_BYTES = 4096
"""Rows of HBM from this length on load at the full rate (aws-neuron-sdk, nki-dma-bandwidth-guide.rst)."""


@frozen
class Joined:
    """Batches that run as one product.

    Attributes:
        count: How many.
        along_depth: Their contractions follow one another; else their columns do.
        rows, columns: Of the product of one batch.
    """

    count: int
    along_depth: bool
    rows: int
    columns: int


def join_batches(context: Context, left: Operand, right: Operand, sizes: Sizes) -> Joined | None:
    """How many batches should run as one product; None where each is better alone."""
    core, along_depth = context.core, right.turned
    run = sizes.depth if along_depth else sizes.columns
    item = max(left.dtype.byte_count, right.dtype.byte_count)
    if right.together == 1 or right.run < run or item > DType.BF16.byte_count:
        return None
    most = core.tensor_columns // max(sizes.rows, 1)
    if not along_depth:
        most = min(most, core.psum_banks // 2 * core.psum_bank_bytes // (4 * sizes.columns))
    most = min(most, right.together)
    fitting = [count for count in range(2, most + 1) if right.together % count == 0]
    wide = [count for count in fitting if count * run * right.dtype.byte_count >= FULL_RATE_BYTES]
    if not fitting:
        return None
    return Joined(wide[0] if wide else fitting[-1], along_depth, sizes.rows, sizes.columns)


def joined_sizes(sizes: Sizes, joined: Joined) -> Sizes:
    """Sizes of the products of joined batches."""
    count = joined.count
    return Sizes(
        sizes.batch // count,
        sizes.rows * count,
        sizes.depth * (count if joined.along_depth else 1),
        sizes.columns * (1 if joined.along_depth else count),
    )


def joined_operands(left: Operand, right: Operand, joined: Joined) -> tuple[Operand, Operand]:
    """Both sides of the products of joined batches."""
    run = right.run * joined.count if joined.along_depth else right.run
    return replace(left, is_vector=False), replace(right, run=run, is_vector=False)


class JoinedBatches:
    """Declares the steps of a product of joined batches that others do not have."""

    _context: Context
    _loop: TileLoop
    _sizes: Sizes
    _joined: Joined | None
    _tile: int
    _depth_tiles: int
    _batch: Ints
    _is_last_depth: Bools
    _output_version: Ints

    def _on_diagonal(self, rows: Slot, version: Ints) -> Slot:
        """The left operand with each batch's rows beside its own part of the contraction, zeros elsewhere."""
        assert self._joined is not None
        elements = self._depth_tiles * self._sizes.rows
        mask = self._mask(elements, rows.dtype)
        wide = self._loop.slot("on diagonal", elements * rows.dtype.byte_count, rows.dtype, version=version)
        self._loop.step(
            Engine.VECTOR, Opcode.TENSOR_TENSOR, reads=(rows, mask), writes=(wide,), elements=elements,
            active=self._loop.first_of(version),
        )  # fmt: skip
        return wide

    def _own_columns(self, sums: list[Slot], rows: Ints) -> Slot:
        """Of each row the columns of its own batch: the others masked, then all added up."""
        assert self._joined is not None
        joined, loop, last = self._joined, self._loop, self._is_last_depth
        columns, bank = joined.count * joined.columns, self._context.core.psum_bank_bytes // 4
        mask = self._mask(columns, DType.F32)
        masked = loop.slot("masked", columns * 4, DType.F32, version=self._output_version)
        for index, psum in enumerate(sums):
            width = min(bank, columns - index * bank)
            loop.step(
                Engine.VECTOR, Opcode.TENSOR_TENSOR, reads=(psum, mask), writes=(masked,), partitions=rows,
                elements=width, active=last, accumulates=index > 0,
            )  # fmt: skip
        own = loop.slot("own columns", joined.columns * 4, DType.F32, version=self._output_version)
        loop.step(
            Engine.VECTOR, Opcode.TENSOR_REDUCE, reads=(masked,), writes=(own,), partitions=rows,
            elements=columns, active=last,
        )  # fmt: skip
        return own

    def _mask(self, elements: int, dtype: DType) -> Slot:
        """Ones where a row meets its own batch: made once."""
        mask = self._loop.slot("mask", elements * dtype.byte_count, dtype, stationary=True)
        first = np.arange(len(self._batch)) == 0
        for opcode, reads in ((Opcode.MEMSET, ()), (Opcode.AFFINE_SELECT, (mask,))):
            self._loop.step(
                Engine.GPSIMD, opcode, reads=reads, writes=(mask,), elements=elements, active=first
            )
        return mask
