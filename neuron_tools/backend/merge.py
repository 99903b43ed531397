"""Transfers of neighbouring tiles become one: up to 4 KiB a partition.

In traces of fused and plain attention on Trn2 the stores and loads of several tiles are one DMA as long as it
brings no more than 4 KiB to a partition (two tiles of 2 KiB, eight of 512 bytes, one of 4 KiB). The tiles
become parts of one. Only what is adjacent in HBM too, in rows or in columns, is joined here. Generations of
which there are no traces keep the kernel's own transfers: bmm_softmax on Trn1 would be 7 % too fast.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.backend.body import BUFFER, FIRST_BYTE, KIND, LAST_BYTE, SCRATCH, Body, Buffers
from neuron_tools.backend.kinds import Kind
from neuron_tools.backend.queues import TRACED_GENERATION
from neuron_tools.backend.schedule import add_kind
from neuron_tools.records.program import Memory

MOST_BYTES = 4096
"""Bytes of a partition that one DMA brings or takes."""


def merge_transfers(body: Body) -> Body:
    """The body with transfers of neighbouring tiles joined, and their tiles as well."""
    from neuron_tools.backend.merge_kernel import group_transfers

    buffers = body.buffers
    if body.core.generation != TRACED_GENERATION or not body.is_open:
        return body
    loads = body.kind_column([_direction(kind) for kind in body.kinds])
    whole_tiles = (
        (buffers.memory == int(Memory.SBUF))
        & (buffers.role == SCRATCH)
        & (buffers.lines == buffers.partitions)
    )
    group = group_transfers(
        body.rows, body.regions, loads, whole_tiles, buffers.lines, buffers.pitch_bytes, MOST_BYTES
    )
    sizes = np.bincount(group[group >= 0], minlength=1)
    group[(group >= 0) & (sizes[group] < 2)] = -1
    return _joined(body, group, loads) if (group >= 0).any() else body


def _direction(kind: Kind) -> int:
    """1 for a plain load of a tile, 2 for a plain store, 0 for anything else."""
    transfer = kind.transfer
    if transfer is None or kind.name != "dma_copy" or transfer.collective is not None or transfer.transpose:
        return 0
    ends = transfer.source_memory, transfer.destination_memory
    if not transfer.is_open:
        return 0
    return {(Memory.HBM, Memory.SBUF): 1, (Memory.SBUF, Memory.HBM): 2}.get(ends, 0)


def _joined(body: Body, group: Ints, direction: Ints) -> Body:
    """The body in which each group of transfers is one."""
    members = np.flatnonzero(group >= 0)
    members = members[np.argsort(group[members], kind="stable")]
    starts = np.flatnonzero(np.diff(group[members], prepend=-1))
    ends = np.append(starts[1:], len(members))
    is_load = direction[members] == 1
    on_chip = body.rows[members, np.where(is_load, 3, 5)]
    outside = body.rows[members, np.where(is_load, 5, 3)]
    buffers, moved, offset = _joined_tiles(body, body.regions[on_chip, BUFFER].astype(np.int64), starts, ends)
    regions = body.regions.astype(np.int64)
    old = regions[:, BUFFER].copy()
    regions[:, BUFFER] = moved[old]
    for column in (FIRST_BYTE, LAST_BYTE):
        regions[:, column] += offset[old]
    rows, kinds = body.rows.copy(), list(body.kinds)
    extra, made, dropped = [], {}, np.zeros(len(rows), bool)
    for first, end in zip(starts.tolist(), ends.tolist()):
        lead = members[first] if is_load[first] else members[end - 1]
        dropped[members[first:end]] = True
        dropped[lead] = False
        part = body.regions[outside[first:end]].astype(np.int64)
        box = [part[0, 0], part[:, 1].min(), part[:, 2].max(), part[:, 3].min(), part[:, 4].max()]
        tile = int(moved[body.regions[on_chip[first], BUFFER]])
        extra += [[tile, 0, buffers.lines[tile], 0, buffers.pitch_bytes[tile]], box]
        here, there = len(regions) + len(extra) - 2, len(regions) + len(extra) - 1
        rows[lead, 3], rows[lead, 5] = (here, there) if is_load[first] else (there, here)
        key = int(rows[lead, KIND]), end - first, bool(part[0, 1] == part[-1, 1])
        if key not in made:
            made[key] = add_kind(kinds, _merged(kinds[key[0]], key[1], key[2]))
        rows[lead, KIND] = made[key]
    all_regions = np.concatenate([regions, np.array(extra, np.int64)]).astype(np.int32)
    return replace(body, rows=rows, regions=all_regions, kinds=kinds, buffers=buffers).ordered_by(
        np.flatnonzero(~dropped)
    )


def _joined_tiles(body: Body, tiles: Ints, starts: Ints, ends: Ints) -> tuple[Buffers, Ints, Ints]:
    """Buffers with one more for each group; of each old one, where it went and at which byte it begins."""
    count = len(body.buffers)
    moved, offset = np.arange(count), np.zeros(count, np.int64)
    pitch = body.buffers.pitch_bytes[tiles]
    total = np.cumsum(pitch)
    before = total - pitch
    counts = ends - starts
    offset[tiles] = before - np.repeat(before[starts], counts)
    moved[tiles] = np.repeat(count + np.arange(len(starts)), counts)
    joined = body.buffers.take(tiles[starts])
    joined.pitch_bytes[:] = np.add.reduceat(pitch, starts)
    return body.buffers.joined(joined), moved, offset


def _merged(kind: Kind, count: int, in_columns: bool) -> Kind:
    """The transfer of `count` tiles; neighbours in a row of HBM make descriptors longer."""
    assert kind.transfer is not None
    longer = count if in_columns else 1
    transfer = replace(
        kind.transfer, bytes=kind.transfer.bytes * count,
        descriptor_bytes=kind.transfer.descriptor_bytes * longer,
    )  # fmt: skip
    return replace(kind, transfer=transfer)
