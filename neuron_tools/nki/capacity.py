"""Whether the tiles of a run can fit on chip at all: more bytes that live at one time fit no allocation.

Timing a kernel places its tiles; a call for values does not, so here is only counted what lives: from the
first instruction that touches a tile to the last, each block of a block dimension for itself, in the older
dialect without fills ahead of time, which its compiler moves. Tiles that the kernel placed itself are left
out, as they may share addresses. A tile takes whole quarters (32) of the partitions, as engines reach them.

PSUM cannot overflow, but what empties it may run sooner than it is written. What SBUF cannot hold the
compiler stores to HBM and loads again (NKI memory hierarchy: "spills"), which is slow and rarely meant, so
the user is warned; it spills nothing in a kernel that places tiles itself, which is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.backend.body import BUFFER, FIRST_WRITE, Body
from neuron_tools.nki.buffer import Buffer
from neuron_tools.nki.errors import OutOfMemoryError
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.tracer import PARTITIONS, Tracer

_QUARTER = 32


class SpillWarning(UserWarning):
    """More tiles live at one time than SBUF holds."""


class _Tiles(NamedTuple):
    """Tiles of one memory, which compete for its room.

    Attributes:
        owner: Number of the kernel's tensor that each is, or is a block of.
        bytes_of: Bytes of a partition, in parts where a tile is on a part of the partitions.
        first, last: First and last row that touches each.
    """

    owner: Ints
    bytes_of: npt.NDArray[np.float64]
    first: Ints
    last: Ints


def check_capacity(trace: Tracer) -> None:
    """Refuse a run in which more bytes live at one time than a memory has.

    Raises:
        OutOfMemoryError: Names the tile with which the memory overflows, and its line.

    Warns:
        SpillWarning: SBUF overflows and the compiler spills.
    """
    over = _overfull_regions(trace) if trace.row_count else []
    if over:
        lives = _lives(trace)
        over = [(region, most) for region, most in over if _peak_bytes(trace, region, lives) > most]
    if not over:
        return
    from neuron_tools.backend.early_copies import empty_early

    body = _compiled_body(trace)
    living = _live_ranges(body)
    for region, capacity in over:
        overfull = _first_overfull(_tiles(body, region, *living), capacity)
        if overfull and region is MemoryRegion.psum:
            emptied = empty_early(body)
            overfull = _first_overfull(_tiles(emptied, region, *_live_ranges(emptied)), capacity)
        if overfull:
            _report(trace, trace.buffers[overfull.owner], overfull.live_bytes, capacity)


def _overfull_regions(trace: Tracer) -> list[tuple[MemoryRegion, int]]:
    """The memories that could not hold all tiles of a run at one time, with their bytes of a partition."""
    core = trace.core
    sizes = {MemoryRegion.sbuf: 0, MemoryRegion.psum: 0}
    for tile in trace.buffers:
        if tile.on_chip and tile.address is None:
            sizes[tile.region] += tile.pitch_bytes * tile.blocks
    capacities = {
        MemoryRegion.sbuf: core.sbuf_bytes_per_partition, MemoryRegion.psum: core.psum_bytes_per_partition,
    }  # fmt: skip
    return [(region, capacities[region]) for region, size in sizes.items() if size > capacities[region]]


def _lives(trace: Tracer) -> dict[int, tuple[int, int]]:
    """First and last row that touches each buffer, all its blocks together."""
    rows, found = range(trace.row_count), dict[int, tuple[int, int]]()
    last = dict(zip(trace.call_rows, rows))
    first = dict(zip(reversed(trace.call_rows), reversed(rows)))
    for call, number in trace.calls.items():
        for region in call[2:]:
            if region >= 0:
                buffer = trace.regions[region][0]
                low, high = found.get(buffer, (trace.row_count, -1))
                found[buffer] = min(low, first[number]), max(high, last[number])
    return found


def _peak_bytes(trace: Tracer, region: MemoryRegion, lives: Mapping[int, tuple[int, int]]) -> float:
    """Bytes of a partition that live at one time, at most: where they fit, nothing needs to be looked at."""
    changes: list[tuple[int, float]] = []
    for number, (first, last) in lives.items():
        tile = trace.buffers[number]
        if tile.region is region and tile.address is None:
            size = tile.bytes_per_partition * _share(tile.partitions)
            changes += (first, size), (last + 1, -size)
    return max(accumulate(size for _, size in sorted(changes)), default=0.0)


def _share(partitions: int) -> float:
    """Part of the partitions that a tile takes, in whole quarters."""
    return min(-(-partitions // _QUARTER) * _QUARTER, PARTITIONS) / PARTITIONS


def _compiled_body(trace: Tracer) -> Body:
    """The calls over buffers of one block each, in the older dialect without the fills that vanish."""
    from neuron_tools.backend.blocks import split_blocks
    from neuron_tools.backend.fills import drop_fills
    from neuron_tools.nki.lowering.body import written_body

    body = split_blocks(written_body(trace))
    return drop_fills(body) if body.loops_open else body


class _Overfull(NamedTuple):
    """The tile with which a memory overflows.

    Attributes:
        owner: Number of the kernel's tensor.
        live_bytes: Bytes of a partition that live with it.
    """

    owner: int
    live_bytes: int


def _first_overfull(tiles: _Tiles, capacity: int) -> _Overfull | None:
    """The first tile with which more lives than a memory has."""
    order = np.argsort(tiles.first, kind="stable")
    by_end = tiles.bytes_of[np.argsort(tiles.last, kind="stable")]
    freed = np.concatenate([[0.0], np.cumsum(by_end)])
    freed = freed[np.searchsorted(np.sort(tiles.last), tiles.first[order], side="left")]
    live = np.cumsum(tiles.bytes_of[order]) - freed
    over = np.flatnonzero(live > capacity)
    return _Overfull(int(tiles.owner[order[over[0]]]), int(live[over[0]])) if len(over) else None


def _tiles(body: Body, region: MemoryRegion, first: Ints, last: Ints) -> _Tiles:
    """The tiles of a memory whose places are open; blocks of a tensor live each for itself."""
    buffers = body.buffers
    numbers = np.flatnonzero((buffers.memory == int(region.memory)) & (buffers.address < 0) & (first >= 0))
    quarters = np.minimum(-(-buffers.partitions // _QUARTER) * _QUARTER, PARTITIONS) / PARTITIONS
    sizes = (buffers.bytes_per_partition * quarters)[numbers]
    return _Tiles(buffers.origin[numbers], sizes, first[numbers], last[numbers])


def _live_ranges(body: Body) -> tuple[Ints, Ints]:
    """First and last row that touches each buffer, -1 where none does."""
    touched = body.rows[:, FIRST_WRITE:]
    row_of = np.nonzero(touched >= 0)[0]
    buffer_of = body.regions[touched[touched >= 0], BUFFER]
    first, last = np.full((2, len(body.buffers)), -1, np.int64)
    first[buffer_of[::-1]] = row_of[::-1]  # of several values for one place NumPy keeps the last
    last[buffer_of] = row_of
    return first, last


def _report(trace: Tracer, tile: Buffer, live_bytes: int, capacity: int) -> None:
    text, where = _overfull(tile, live_bytes, capacity), trace.describe_site(tile.site)
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
