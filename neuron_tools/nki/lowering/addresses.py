"""Addresses of tiles in SBUF and PSUM, and which earlier tiles each one takes the place of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neuron_tools.nki.buffer import Buffer
from neuron_tools.nki.errors import OutOfMemoryError
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.tracer import Tracer

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the tiles of a trace lie.

    Attributes:
        address: (buffers,) byte in each partition; -1 in HBM and where a tile is never used.
        pitch: (buffers,) bytes of a block in each partition.
        block_addresses: Own addresses of blocks, where the kernel placed them.
        predecessor_start, predecessors: Buffers whose place each takes (CSR).
    """

    address: Ints
    pitch: Ints
    block_addresses: dict[int, tuple[int, ...]]
    predecessor_start: Ints
    predecessors: Ints

    def block_address(self, buffers: Ints, blocks: Ints) -> Ints:
        """Byte in each partition of blocks of buffers; arrays of one shape."""
        result: Ints = np.maximum(self.address[buffers], 0) + blocks * self.pitch[buffers]
        for number, places in self.block_addresses.items():
            chosen = buffers == number
            if chosen.any():
                result[chosen] = np.array(places, np.int64)[blocks[chosen] % len(places)]
        return result


def assign_addresses(trace: Tracer, rows: npt.NDArray[np.int32], regions: npt.NDArray[np.int32]) -> Addresses:
    """Place every tile that the rows use.

    Raises:
        OutOfMemoryError: The tiles that live at one time do not fit; names the one that did not.
        RaceError: Tiles that the kernel placed at one address are used at the same time.
    """
    from neuron_tools.nki.lowering.allocation_kernel import live_ranges
    from neuron_tools.nki.lowering.placement_check import check_placed

    buffers = trace.buffers
    first, last = live_ranges(rows, regions, len(buffers))
    address = np.full(len(buffers), -1, np.int64)
    pairs = [np.zeros((0, 2), np.int64)]
    for region in (MemoryRegion.sbuf, MemoryRegion.psum):
        members = [b for b in buffers if b.region is region and first[b.number] >= 0]
        if members:
            check_placed(trace, members, rows, regions)
            pairs.append(_place(trace, region, members, first, last, address))
    joined = np.concatenate(pairs)
    order = np.argsort(joined[:, 0], kind="stable")
    counts = (
        np.bincount(joined[:, 0], minlength=len(buffers)) if len(joined) else np.zeros(len(buffers), np.int64)
    )
    start = np.zeros(len(buffers) + 1, np.int64)
    np.cumsum(counts, out=start[1:])
    return Addresses(
        address,
        np.array([buffer.pitch_bytes for buffer in buffers], np.int64),
        {b.number: b.block_addresses for b in buffers if b.block_addresses},
        start,
        joined[order, 1],
    )


def _place(
    trace: Tracer, region: MemoryRegion, members: list[Buffer], first: Ints, last: Ints, address: Ints
) -> Ints:
    from neuron_tools.nki.lowering.allocation_kernel import allocate

    core = trace.core
    size = np.zeros(len(address), np.int64)
    fixed = np.full(len(address), -1, np.int64)
    for buffer in members:
        size[buffer.number] = _span(buffer)
        if buffer.address is not None:
            fixed[buffer.number] = min(buffer.block_addresses or (buffer.address,))
    numbers = np.array([buffer.number for buffer in members], np.int64)
    order = numbers[np.argsort(first[numbers], kind="stable")]
    if region is MemoryRegion.sbuf:
        capacity, bank, alignment = core.sbuf_bytes_per_partition, 0, 32
    else:
        capacity, bank, alignment = core.psum_bytes_per_partition, core.psum_bank_bytes, 4
    placed, pairs, failed, live = allocate(order, first, last, size, fixed, capacity, bank, alignment)
    if failed[0] >= 0:
        raise _overfull(trace, trace.buffers[int(failed[0])], capacity, live)
    address[numbers] = placed[numbers]
    return np.asarray(pairs)


def _span(buffer: Buffer) -> int:
    """Bytes of each partition between the first and the last block."""
    if buffer.block_addresses:
        return max(buffer.block_addresses) - min(buffer.block_addresses) + buffer.pitch_bytes
    return buffer.bytes_per_partition


def _overfull(trace: Tracer, buffer: Buffer, capacity: int, live: int) -> OutOfMemoryError:
    return OutOfMemoryError(
        f"{str(buffer.region).upper()} is full: the tile {buffer.name or ''} of shape {buffer.shape} and "
        f"type {buffer.dtype} needs {buffer.bytes_per_partition} bytes of each partition, but tiles that are "
        f"still used take {live} of {capacity}; use smaller tiles, or use them up before making new ones",
        trace.describe_site(buffer.site),
    )
