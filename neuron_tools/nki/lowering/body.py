"""A trace as the back end takes it: calls in program order over buffers that have no place yet."""

from __future__ import annotations

import numpy as np

from neuron_tools.backend.allocate import NoPlaceError
from neuron_tools.backend.body import CONSTANT, INPUT, OUTPUT, SCRATCH, Body, Buffers
from neuron_tools.backend.spill import WorkingSetError
from neuron_tools.nki.buffer import Buffer
from neuron_tools.nki.errors import OutOfMemoryError
from neuron_tools.nki.lowering.placement_check import check_placed
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.tracer import Tracer

_ROLES = {"input": INPUT, "output": OUTPUT, "constant": CONSTANT, "scratch": SCRATCH}


def make_body(trace: Tracer) -> Body:
    """The calls of a trace, as written.

    Raises:
        RaceError: Tiles that the kernel placed at one address are used at the same time.
    """
    check_placed(trace)
    return written_body(trace)


def written_body(trace: Tracer) -> Body:
    """The calls of a trace, as written, whatever tiles the kernel placed where."""
    rows, regions = trace.row_table().copy(), trace.region_table().copy()
    buffers = trace.buffers
    return Body(
        core=trace.core, rows=rows, regions=regions, kinds=list(trace.kind_list), buffers=_columns(buffers),
        origin=np.arange(len(rows), dtype=np.int64), ties=tuple(trace.ties), ordered=tuple(trace.ordered),
        block_addresses={b.number: b.block_addresses for b in buffers if b.block_addresses},
        iterations=trace.iteration_table(), loops_open=trace.older_dialect and not trace.middle_end_skipped,
    )  # fmt: skip


def _columns(buffers: list[Buffer]) -> Buffers:
    return Buffers(
        memory=np.array([int(b.region.memory) for b in buffers], np.uint8),
        lines=np.array([b.lines for b in buffers], np.int64),
        pitch_bytes=np.array([b.pitch_bytes for b in buffers], np.int64),
        partitions=np.array([max(b.partitions, 1) for b in buffers], np.int64),
        address=np.array([_placed(b) for b in buffers], np.int64),
        role=np.array([_ROLES[b.kind] for b in buffers], np.uint8),
        origin=np.arange(len(buffers), dtype=np.int64),
    )


def _placed(buffer: Buffer) -> int:
    """Byte where the kernel put the first block, -1 where it left the place open."""
    if buffer.address is None:
        return -1
    return min(buffer.block_addresses or (buffer.address,))


def overfull(trace: Tracer, body: Body, error: NoPlaceError | WorkingSetError) -> OutOfMemoryError:
    """The error for a kernel that does not fit, at its line."""
    if isinstance(error, WorkingSetError):
        return OutOfMemoryError(str(error), trace.describe_site(int(body.rows[error.row, 1])))
    buffer = trace.buffers[error.origin]
    capacity = trace.core.sbuf_bytes_per_partition
    if buffer.region is MemoryRegion.psum:
        capacity = trace.core.psum_bytes_per_partition
    return OutOfMemoryError(
        f"{str(buffer.region).upper()} is full: the tile {buffer.name or ''} of shape {buffer.shape} and "
        f"type {buffer.dtype} needs {buffer.bytes_per_partition} bytes of each partition, but tiles that "
        f"are still used take {error.live} of {capacity}; use smaller tiles, or use them up before making "
        "new ones",
        trace.describe_site(buffer.site),
    )
