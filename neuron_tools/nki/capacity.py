"""Whether the tiles of a run can fit on chip at all: more bytes that live at one time fit no allocation.

Timing a kernel places its tiles; a call for values does not, so here is only counted what lives: from the
first instruction that touches a tile to the last. Tiles that the kernel placed itself are left out, as they
may share addresses. A tile takes whole quarters (32) of the partitions, as engines reach them.

PSUM cannot overflow. What SBUF cannot hold the compiler stores to HBM and loads again (NKI memory hierarchy:
"spills"), which is slow and rarely meant, so the user is warned; it spills nothing in a kernel that places
tiles itself, which is refused.
"""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from neuron_tools.nki.buffer import Buffer
from neuron_tools.nki.errors import OutOfMemoryError
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.tracer import PARTITIONS, Tracer

Ints = npt.NDArray[np.int64]
_QUARTER = 32
_FIRST_REGION = 3
"""Column of a row from which on it has regions."""


class SpillWarning(UserWarning):
    """More tiles live at one time than SBUF holds."""


def check_capacity(trace: Tracer) -> None:
    """Refuse a run in which more bytes live at one time than a memory has.

    Raises:
        OutOfMemoryError: Names the tile with which the memory overflows, and its line.

    Warns:
        SpillWarning: SBUF overflows and the compiler spills.
    """
    if not trace.buffers or not trace.row_count:
        return
    first, last = _live_ranges(trace)
    core = trace.core
    for region, capacity in (
        (MemoryRegion.sbuf, core.sbuf_bytes_per_partition),
        (MemoryRegion.psum, core.psum_bytes_per_partition),
    ):
        tiles = [
            b for b in trace.buffers if b.region is region and b.address is None and first[b.number] >= 0
        ]
        if sum(tile.bytes_per_partition for tile in tiles) > capacity:
            _check(trace, tiles, first, last, capacity)


def _live_ranges(trace: Tracer) -> tuple[Ints, Ints]:
    """First and last row that touches each buffer, -1 where none does."""
    rows, regions = trace.row_table(), trace.region_table()
    touched = rows[:, _FIRST_REGION:]
    row_of = np.nonzero(touched >= 0)[0]
    buffer_of = regions[touched[touched >= 0], 0]
    first, last = np.full((2, len(trace.buffers)), -1, np.int64)
    first[buffer_of[::-1]] = row_of[::-1]  # of several values for one place NumPy keeps the last
    last[buffer_of] = row_of
    return first, last


def _check(trace: Tracer, tiles: list[Buffer], first: Ints, last: Ints, capacity: int) -> None:
    numbers = np.array([tile.number for tile in tiles], np.int64)
    size = np.array([tile.bytes_per_partition * _share(tile) for tile in tiles], np.float64)
    order = np.argsort(first[numbers], kind="stable")
    begins, ends = first[numbers][order], np.sort(last[numbers])
    by_end = size[np.argsort(last[numbers], kind="stable")]
    freed = np.concatenate([[0.0], np.cumsum(by_end)])[np.searchsorted(ends, begins, side="left")]
    live = np.cumsum(size[order]) - freed
    over = np.flatnonzero(live > capacity)
    if len(over):
        tile = tiles[int(order[over[0]])]
        text = _overfull(tile, int(live[over[0]]), capacity)
        where = trace.describe_site(tile.site)
        if tile.region is MemoryRegion.sbuf and all(buffer.address is None for buffer in trace.buffers):
            spills = "the compiler spills to HBM, which is slow"
            warnings.warn(f"{where}: {text}; as it stands, {spills}", SpillWarning, stacklevel=2)
        else:
            raise OutOfMemoryError(text, where)


def _overfull(tile: Buffer, live: int, capacity: int) -> str:
    name = f"{tile.name} " if tile.name else ""
    return (
        f"{str(tile.region).upper()} is full: with the tile {name}of shape {tile.shape} and type "
        f"{tile.dtype}, tiles that are still used take {live} bytes of each partition, which has {capacity}; "
        "use smaller tiles, or use them up before making new ones"
    )


def _share(tile: Buffer) -> float:
    """Part of the partitions that a tile takes."""
    return min(-(-tile.partitions // _QUARTER) * _QUARTER, PARTITIONS) / PARTITIONS
