"""Compiled kernel that finds which write each read of on-chip memory takes its value from."""

from __future__ import annotations

from neuron_tools.arrays import Ints
from neuron_tools.compiled import compiled

NOTHING = -1


@compiled
def _reads(tile: int, cells: Ints, writer: Ints, row: int, found: Ints, count: int) -> int:
    """Add (row, writer) for each distinct writer of a tile's cells; returns how many are found in all."""
    last = NOTHING
    for quadrant in range(cells[tile, 2], cells[tile, 3]):
        for cell in range(cells[tile, 0], cells[tile, 1]):
            producer = writer[quadrant, cell]
            if producer != NOTHING and producer != last:
                if count < len(found):
                    found[count, 0], found[count, 1] = row, producer
                count += 1
                last = producer
    return count


@compiled
def true_dependencies(
    reads: Ints, writes: Ints, producers: Ints, cells: Ints,
    writer: Ints, found: Ints,
) -> int:  # fmt: skip
    """Pairs (row, producer) of which the row reads what the producer wrote last.

    Args:
        reads: (rows, operands) tiles that each row reads, -1 = none.
        writes: (rows,) tile that each row writes, -1 = none.
        producers: (rows,) number by which the row's writes are known.
        cells: (tiles, 4) first and last cell, first and last group of partitions of each tile.
        writer: (groups of partitions, cells) filled with -1; is used up.
        found: (most, 2) takes the pairs.

    Returns:
        How many there are, which may be more than `found` has room for.
    """
    count = 0
    for row in range(len(writes)):
        for operand in range(reads.shape[1]):
            if reads[row, operand] >= 0:
                count = _reads(reads[row, operand], cells, writer, row, found, count)
        tile = writes[row]
        if tile >= 0:
            for quadrant in range(cells[tile, 2], cells[tile, 3]):
                for cell in range(cells[tile, 0], cells[tile, 1]):
                    writer[quadrant, cell] = producers[row]
    return count
