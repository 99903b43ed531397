"""How a group's iteration space is laid on the chip: which axis lies on partitions, and the tile shape."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.compiler.passes.groups import Domain
from neuron_tools.frozen import frozen

MINIMUM_RUN_BYTES = 512
"""Shorter descriptors waste DMA (nki_hardware section 4: descriptor >= 512 B)."""
SHORT_ROW_ELEMENTS = 512
"""Rows shorter than this are put several to a partition, so that instructions stay long."""
TARGET_ITERATIONS = 8
"""Tiles a loop should have, so that loading, computing and storing overlap."""


@frozen
class Space:
    """A 2-D iteration space cut into tiles of `partitions * rows_per_partition` rows x `chunk` columns.

    Attributes:
        rows, columns: The space; `rows` lie on partitions.
        run: Elements of a row that lie together in HBM (smaller than `columns` for channel-like layouts).
        rows_per_partition: Rows that share a partition.
        chunk: Columns of a tile.
        segment: Rows that a tile must not straddle (a reduction over rows ends there).
        element_count: Elements of the space; less than rows x columns if the last row is short.
        column_major: Iterate over all rows of a chunk before the next chunk.
        levels: Passes over the columns of a row.
        partitions: Partitions of the chip.
        row_parts: Partitions that share a row: `rows` counts each of its parts.
    """

    rows: int
    columns: int
    run: int
    rows_per_partition: int
    chunk: int
    segment: int
    element_count: int
    column_major: bool = False
    levels: int = 1
    partitions: int = 128
    row_parts: int = 1

    @property
    def tile_rows(self) -> int:
        """Rows of a tile."""
        return min(self.partitions * self.rows_per_partition, self.segment)

    @property
    def tiles_per_segment(self) -> int:
        """Row tiles of one segment."""
        return -(-self.segment // self.tile_rows)

    @property
    def row_tiles(self) -> int:
        """Row tiles in all."""
        return self.tiles_per_segment * (self.rows // self.segment)

    @property
    def chunks(self) -> int:
        """Column chunks."""
        return -(-self.columns // self.chunk)

    @property
    def passes(self) -> int:
        """Iterations per row tile: every level walks over the chunks again if there are several."""
        return self.chunks * (self.levels if self.chunks > 1 else 1)

    @property
    def iterations(self) -> int:
        """Iterations of the loop."""
        return self.row_tiles * self.passes

    def row_tile(self) -> Ints:
        """(iterations,) row tile of each iteration."""
        index = np.arange(self.iterations)
        return index % self.row_tiles if self.column_major else index // self.passes

    def pass_number(self) -> Ints:
        """(iterations,) position inside the row tile."""
        index = np.arange(self.iterations)
        return index // self.row_tiles if self.column_major else index % self.passes

    def level(self) -> Ints:
        """(iterations,) level that the iteration serves; 0 everywhere if one pass serves all levels."""
        return self.pass_number() // self.chunks

    def chunk_number(self) -> Ints:
        """(iterations,) column chunk."""
        return self.pass_number() % self.chunks

    def tile_row_counts(self) -> Ints:
        """(iterations,) rows in the tile."""
        within = self.row_tile() % self.tiles_per_segment
        return np.minimum(self.tile_rows, self.segment - within * self.tile_rows)

    def widths(self) -> Ints:
        """(iterations,) columns in the tile."""
        return np.minimum(self.chunk, self.columns - self.chunk_number() * self.chunk)

    def partition_counts(self) -> Ints:
        """(iterations,) partitions used."""
        return -(-self.tile_row_counts() // self.rows_per_partition)

    def elements_per_partition(self) -> Ints:
        """(iterations,) elements of each partition in a full tile."""
        return self.widths() * np.minimum(self.rows_per_partition, self.tile_row_counts())

    def tile_elements(self) -> Ints:
        """(iterations,) elements in the tile; what pads the space is taken off the last tiles."""
        counts = self.tile_row_counts() * self.widths()
        if self.levels == 1:
            excess = int(counts.sum()) - self.element_count
            for index in range(len(counts) - 1, -1, -1):
                if excess <= 0:
                    break
                taken = min(excess, int(counts[index]) - 1)
                counts[index] -= taken
                excess -= taken
        return counts

    def run_elements(self) -> int:
        """Elements that one descriptor of a full tile moves."""
        if self.run < self.columns:
            return min(self.run, self.chunk)
        return self.chunk if self.chunk < self.columns else self.columns * self.rows_per_partition

    def with_chunk(self, chunk: int) -> Space:
        """The same space with other tiles."""
        return replace(self, chunk=max(1, min(chunk, self.columns)))

    def in_row_parts(self, parts: int) -> Space:
        """The same space with rows cut into equal parts, each on a partition of its own."""
        columns = self.columns // parts
        return replace(
            self, rows=self.rows * parts, segment=self.segment * parts, columns=columns,
            chunk=min(self.chunk, columns), row_parts=parts,
        )  # fmt: skip

    def in_images(self, longest: int, item_bytes: int) -> Space:
        """The same space with each piece of a row in an image of its own, several rows' to a partition.

        Args:
            longest: Elements that a partition should have in a tile at most.
            item_bytes: Bytes of an element in HBM.
        """
        images = self.columns // self.run
        if images > self.partitions:
            return self
        groups = self.partitions // images
        wanted = min(longest // self.run, self.rows // (groups * TARGET_ITERATIONS))
        wanted = max(wanted, -(-MINIMUM_RUN_BYTES // (self.run * item_bytes)))
        together = next(count for count in range(min(wanted, self.rows), 0, -1) if self.rows % count == 0)
        return replace(
            self, rows=self.rows * images, segment=self.segment * images, columns=self.run, chunk=self.run,
            rows_per_partition=together, row_parts=images, partitions=groups * images,
        )  # fmt: skip


def flat_space(element_count: int, item_bytes: int, partitions: int = 128) -> Space:
    """Lay a space without structure over the partitions, contiguous pieces on each."""
    pieces = max(1, element_count * item_bytes // MINIMUM_RUN_BYTES)
    rows = min(partitions, pieces, element_count)
    columns = -(-element_count // rows)
    rows = -(-element_count // columns)
    chunk = _balanced(columns, columns, item_bytes)
    return Space(rows, columns, columns, 1, chunk, rows, element_count, partitions=partitions)


def row_space(
    domain: Domain, item_bytes: int, *, segment: int, reduces_rows: bool, partitions: int = 128
) -> Space:
    """Lay rows on partitions; short rows share one.

    Args:
        domain: Rows x columns; outer repetitions become columns if `reduces_rows` (a row's elements must
            meet on one partition), else rows.
        item_bytes: Bytes of an element in HBM.
        segment: Rows over which a reduction over rows runs; `domain.rows` where there is none.
        reduces_rows: There is a reduction along the columns.
    """
    rows, columns, run = domain.rows, domain.columns * domain.outer, domain.columns
    if domain.outer > 1 and not reduces_rows:
        rows, columns = domain.outer * domain.rows, domain.columns
        segment = rows if segment == domain.rows else segment
    together = 1
    if columns < SHORT_ROW_ELEMENTS and segment > partitions and run == columns:
        limit = -(-segment // partitions)
        wanted = max(1, 4 * SHORT_ROW_ELEMENTS // columns)
        together = max(1, min(limit, wanted, -(-segment // (partitions * TARGET_ITERATIONS))))
        together = max(together, min(limit, -(-MINIMUM_RUN_BYTES // (columns * item_bytes))))
    count = rows * columns
    chunk = columns
    if not reduces_rows and together == 1:
        chunk = _balanced(columns, columns * -(-rows // partitions), item_bytes)
    return Space(rows, columns, run, together, chunk, segment, count, partitions=partitions)


def _balanced(columns: int, per_partition: int, item_bytes: int) -> int:
    """Chunk of a row: about an eighth of a partition's work, within 2 KiB and 16 KiB."""
    target = max(1, -(-per_partition // TARGET_ITERATIONS))
    low, high = 2048 // item_bytes, 16384 // item_bytes
    chunk = min(max(target, low), high)
    chunks = -(-columns // chunk)
    return -(-columns // chunks)


def in_proportion(total: int, share: npt.NDArray[np.float64]) -> Ints:
    """(iterations,) `total` elements over the iterations in proportion to `share`, exactly."""
    ends = np.rint(np.cumsum(share) * total).astype(np.int64)
    ends[-1] = total
    return np.asarray(np.maximum(np.diff(ends, prepend=0), 1))
