"""Tiles that the kernel placed itself: refused where one is read after another at its address was written.

A tile here is one block of a tensor: a tensor of many blocks may have some of them at one address, so that
they take turns. The bounds of all tiles cut each memory into cells, of which each tile takes a rectangle; a
read is lost where a cell of the tile was written by somebody else since the tile itself was.
"""

from __future__ import annotations

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.nki.buffer import Buffer
from neuron_tools.nki.errors import RaceError
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.tracer import Tracer


@frozen
class _Tiles:
    """The tiles of the tensors that a kernel placed.

    Attributes:
        buffers: Tensor of each tile.
        blocks: Block of that tensor.
        first_tile: Number of each tensor's first tile, by the tensor's number; -1 for others.
        bounds: (tiles, 4) first and last byte and partition, ends exclusive; PSUM's bytes follow SBUF's.
    """

    buffers: list[Buffer]
    blocks: list[int]
    first_tile: Ints
    bounds: Ints

    def name(self, tile: int) -> str:
        """What to call a tile."""
        buffer, block = self.buffers[tile], self.blocks[tile]
        name = str(buffer.name or buffer.shape)
        return name if buffer.blocks == 1 else f"{name} (block {block})"

    def common_place(self, tile: int, other: int) -> str:
        """Where two tiles overlap first."""
        byte = max(_address(self.buffers[each], self.blocks[each]) for each in (tile, other))
        return f"{self.buffers[tile].region} byte {byte}"


def check_placed(trace: Tracer) -> None:
    """Refuse reads of a placed tile after another one at the same address was written.

    Raises:
        RaceError: Names both tiles and the line that reads.
    """
    from neuron_tools.nki.lowering.placement_kernel import first_lost

    placed = [buffer for buffer in trace.buffers if buffer.on_chip and buffer.address is not None]
    if sum(buffer.blocks for buffer in placed) < 2:
        return
    tiles = _tiles(trace, placed)
    cells, width, height = _cells(tiles.bounds)
    rows = trace.row_table()
    row, tile, culprit = first_lost(rows, _tiles_of_regions(trace, tiles), cells, width, height)
    if row >= 0:
        raise RaceError(
            f"the tile {tiles.name(tile)} is read, but {tiles.name(culprit)}, which the kernel placed at the "
            f"same address ({tiles.common_place(tile, culprit)}), was written in between and nothing keeps "
            "them apart; give them separate addresses",
            trace.describe_site(int(rows[row, 1])),
        )


def _tiles(trace: Tracer, placed: list[Buffer]) -> _Tiles:
    first_tile = np.full(len(trace.buffers), -1, np.int64)
    buffers: list[Buffer] = []
    blocks: list[int] = []
    bounds: list[tuple[int, int, int, int]] = []
    for buffer in placed:
        first_tile[buffer.number] = len(blocks)
        base = trace.core.sbuf_bytes_per_partition if buffer.region is MemoryRegion.psum else 0
        pitch, low = buffer.pitch_bytes, buffer.partition
        high = low + buffer.lines // buffer.blocks
        for block in range(buffer.blocks):
            byte = base + _address(buffer, block)
            buffers.append(buffer)
            blocks.append(block)
            bounds.append((byte, byte + pitch, low, high))
    return _Tiles(buffers, blocks, first_tile, np.array(bounds, np.int64))


def _address(buffer: Buffer, block: int) -> int:
    if buffer.block_addresses:
        return buffer.block_addresses[block]
    return (buffer.address or 0) + block * buffer.pitch_bytes


def _cells(bounds: Ints) -> tuple[Ints, int, int]:
    """(rectangle of cells of each tile, columns, rows) of the grid that the tiles' bounds make."""
    columns, rows = np.unique(bounds[:, :2]), np.unique(bounds[:, 2:])
    cells = np.column_stack([np.searchsorted(columns, bounds[:, :2]), np.searchsorted(rows, bounds[:, 2:])])
    return np.ascontiguousarray(cells), len(columns) - 1, len(rows) - 1


def _tiles_of_regions(trace: Tracer, tiles: _Tiles) -> Ints:
    """First and last tile that each region touches, the end exclusive; (0, 0) where none is placed."""
    regions = trace.region_table().astype(np.int64)
    tile = tiles.first_tile[regions[:, 0]]
    own = np.flatnonzero(tile >= 0)
    tile, first, last = tile[own], regions[own, 1], regions[own, 2]
    partitions = tiles.bounds[tile, 3] - tiles.bounds[tile, 2]
    touched = np.zeros((len(regions), 2), np.int64)
    touched[own, 0] = tile + first // partitions
    touched[own, 1] = tile + (last - 1) // partitions + 1
    return touched
