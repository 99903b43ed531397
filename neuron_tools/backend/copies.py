"""Stores that the next one overwrites, and copies of tiles that nobody needs any more: both fall away.

A register allocator by graph colouring, as the compiler's is, gives the two ends of a copy one place where
the first ends as the second begins. Counters of NKIBench on Trn1 show no such copies: the
partial results that `loop_reduce` hands on in every iteration have no instruction, nor have fills that a
product overwrites.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neuron_tools.backend.body import BUFFER, SCRATCH, Body
from neuron_tools.backend.kinds import Kind
from neuron_tools.records.program import Flag, Opcode

_MOVES = (Opcode.TENSOR_COPY, Opcode.MEMSET, Opcode.MATMUL, Opcode.TRANSPOSE)
"""Last steps of calls that only make what they write, all of it."""


def drop_copies(body: Body) -> Body:
    """The body without stores that are overwritten unread, and without copies of what ends there."""
    from neuron_tools.backend.copy_kernel import join_copies, overwritten

    buffers = body.buffers
    if not len(body) or body.is_placed:
        return body
    area = buffers.lines * buffers.pitch_bytes
    covering = body.kind_column([_covers(kind) for kind in body.kinds]) != 0
    body = body.ordered_by(np.flatnonzero(~overwritten(body.rows, body.regions, covering, _kept(body), area)))
    straight = body.kind_column([kind.straight for kind in body.kinds]) != 0
    free = buffers.on_chip & (buffers.role == SCRATCH)
    form = np.stack([buffers.memory, buffers.lines, buffers.pitch_bytes, buffers.partitions], 1).astype(
        np.int64
    )
    same, dropped = join_copies(body.rows, body.regions, straight, free, form, area)
    regions = body.regions.copy()
    regions[:, BUFFER] = same[regions[:, BUFFER]]
    return replace(body, regions=regions).ordered_by(np.flatnonzero(~dropped))


def _kept(body: Body) -> np.ndarray:
    """Buffers of which every store counts: those outside the chip."""
    return np.asarray(~body.buffers.on_chip)


def _covers(kind: Kind) -> bool:
    """Whether a call does nothing but write every byte of its region, whatever was there."""
    if not kind.whole or not kind.steps or kind.steps[-1].opcode not in _MOVES:
        return False
    products = [step for step in kind.steps if step.opcode is Opcode.MATMUL]
    return not products or Flag.ACCUMULATE not in products[0].flags
