"""Places in SBUF and PSUM, in program order, and whose place each buffer takes.

SBUF and PSUM rotate: a buffer takes the next free place after the last one, so that what was freed last is
taken last (in published traces the PSUM bank taken is among the three longest free in 141 of 146 cases).
Blocks of a tensor that is loaded take turns at two places, so that one is loaded while the other is used: a
block dimension is logical, and two physical tiles double-buffer (NKI direct allocation guide, background).
With as many as SBUF has room for, silu on Trn1 would be 25 % too fast; with two it is within 3 %.

A tile takes a whole PSUM bank however small, where that fits. Tiles that the kernel placed stay where they
are.
"""

from __future__ import annotations

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.backend.body import BUFFER, FIRST_WRITE, KIND, Body
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen
from neuron_tools.records.program import Memory

ALIGNMENT = {Memory.SBUF: 32, Memory.PSUM: 4}


@frozen
class Places:
    """Where buffers lie.

    Attributes:
        address: (buffers,) byte in each partition; -1 in HBM and where one is never used.
        predecessor_start, predecessors: Buffers whose place each takes (CSR).
    """

    address: Ints
    predecessor_start: Ints
    predecessors: Ints


class NoPlaceError(NeuronToolsError):
    """The buffers that live at one time do not fit.

    Attributes:
        origin: The kernel's tensor of the buffer that found no place.
        live: Bytes of a partition that others held then.
    """

    def __init__(self, memory: Memory, origin: int, live: int) -> None:
        super().__init__(f"{memory.name} is full: use smaller tiles, or use them up before making new ones")
        self.memory, self.origin, self.live = memory, origin, live


def allocate(body: Body, search: int | None = None) -> Places:
    """Place every on-chip buffer that the calls use.

    Args:
        body: The calls.
        search: Where the search for a place in SBUF begins (`allocation_kernel`); default NEXT.

    Raises:
        NoPlaceError: They do not fit.
    """
    from neuron_tools.backend.allocation_kernel import NEXT, live_ranges

    search = NEXT if search is None else search
    count = len(body.buffers)
    first, last = live_ranges(body.rows, body.regions, count)
    address = np.full(count, -1, np.int64)
    pairs = [_placed(body, memory, first, last, address, search) for memory in (Memory.SBUF, Memory.PSUM)]
    joined = np.concatenate(pairs)
    order = np.argsort(joined[:, 0], kind="stable")
    start = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(joined[:, 0], minlength=count), out=start[1:])
    return Places(address, start, joined[order, 1])


def _placed(body: Body, memory: Memory, first: Ints, last: Ints, address: Ints, search: int) -> Ints:
    from neuron_tools.backend.allocation_kernel import NEXT

    members = np.flatnonzero((body.buffers.memory == int(memory)) & (first >= 0))
    if not len(members):
        return np.zeros((0, 2), np.int64)
    size = body.buffers.bytes_per_partition.copy()
    for number, places in body.block_addresses.items():
        size[number] = max(places) - min(places) + body.buffers.pitch_bytes[number]
    if memory is Memory.PSUM:
        bank = body.core.psum_bank_bytes
        whole = np.where(body.buffers.address >= 0, size, -(-size // bank) * bank)
        try:
            return _place(body, memory, members, first, last, address, whole, NEXT)
        except NoPlaceError:
            pass  # more tiles than banks live at once: they share banks
    return _place(
        body, memory, members, first, last, address, size, NEXT if memory is Memory.PSUM else search
    )


def _place(
    body: Body,
    memory: Memory,
    members: Ints,
    first: Ints,
    last: Ints,
    address: Ints,
    size: Ints,
    search: int,
) -> Ints:
    from neuron_tools.backend.allocation_kernel import allocate as placed_tiles

    core = body.core
    on_sbuf = memory is Memory.SBUF
    found, pairs, failed, live = placed_tiles(
        members[np.argsort(first[members], kind="stable")], first, last, size, body.buffers.address,
        core.sbuf_bytes_per_partition if on_sbuf else core.psum_bytes_per_partition,
        0 if on_sbuf else core.psum_bank_bytes, ALIGNMENT[memory], search,
        _turns_of(body),
    )  # fmt: skip
    if failed[0] >= 0:
        raise NoPlaceError(memory, int(body.buffers.origin[failed[0]]), int(live))
    address[members] = found[members]
    return np.asarray(pairs)


def _turns_of(body: Body) -> Ints:
    """The tensor of each buffer that is a block of several and is loaded; -1 for others."""
    loads = [k.transfer is not None and k.transfer.destination_memory is Memory.SBUF for k in body.kinds]
    rows = body.rows[np.array(loads, bool)[body.rows[:, KIND]]] if len(body) else body.rows
    loaded = np.full(len(body.buffers), -1, np.int64)
    if body.loops_open:
        tile = body.regions[rows[:, FIRST_WRITE], BUFFER]
        loaded[tile] = body.buffers.origin[tile]
    return loaded
