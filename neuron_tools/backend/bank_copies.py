"""Tiles that are turned one after another share a bank of PSUM, and one copy empties it.

In traces of fused and plain attention on Trn2 four transposes of 128 columns in fp32 fill a bank of 2 KiB,
and one copy of 512 columns takes all four to their places side by side. Joined are as many as a bank holds,
or all of a row of neighbours where they fit; no copy has more than 512 columns: in bf16 four of a sequence of
512 are joined, of the eight at 1,024 none. Generations of which there are no traces keep the kernel's own
copies.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.backend.body import (
    BUFFER,
    FIRST_BYTE,
    FIRST_LINE,
    FIRST_READ,
    FIRST_WRITE,
    KIND,
    LAST_BYTE,
    LAST_LINE,
    SITE,
    Body,
)
from neuron_tools.backend.joined import Joined
from neuron_tools.backend.kinds import Kind
from neuron_tools.backend.queues import TRACED_GENERATION
from neuron_tools.records.program import Opcode

_WIDEST = 512
"""Columns of one copy."""


def share_banks(body: Body) -> Body:
    """The body with copies of neighbouring turned tiles joined."""
    if body.core.generation != TRACED_GENERATION or not body.is_open:
        return body
    joined = Joined(body)
    for row in _rows_of_neighbours(body):
        for members in _shares(body, row):
            if joined.may_join(members, FIRST_READ):
                joined.join_copies(members, _kind_of_several)
    return joined.body(np.arange(len(body))) if joined.count else body


def _rows_of_neighbours(body: Body) -> list[Ints]:
    """Copies of one line of tiles to places side by side that nothing else touches between them."""
    from neuron_tools.backend.spill_kernel import uses_of

    copies = np.flatnonzero(_of_turned_tiles(body))
    if len(copies) < 2:
        return []
    region = body.regions[body.rows[copies, FIRST_WRITE]].astype(np.int64)
    start, uses = uses_of(body.rows, body.regions, len(body.buffers))
    at = start[region[:, BUFFER]]
    ordinal = np.empty(len(copies), np.int64)  # of each among the uses of what it writes
    for number, (row, first, buffer) in enumerate(zip(copies, at, region[:, BUFFER])):
        ordinal[number] = first + np.searchsorted(uses[first : start[buffer + 1]], row)
    follows = np.zeros(len(copies), bool)
    rows = body.rows[copies]
    follows[1:] = (region[1:, BUFFER] == region[:-1, BUFFER]) & (ordinal[1:] == ordinal[:-1] + 1)
    follows[1:] &= (region[1:, FIRST_BYTE] == region[:-1, LAST_BYTE]) & (
        region[1:, FIRST_LINE : LAST_LINE + 1] == region[:-1, FIRST_LINE : LAST_LINE + 1]
    ).all(axis=1)
    follows[1:] &= (rows[1:, [KIND, SITE]] == rows[:-1, [KIND, SITE]]).all(axis=1)
    return [part for part in np.split(copies, np.flatnonzero(~follows)[1:]) if len(part) > 1]


def _of_turned_tiles(body: Body) -> np.ndarray:
    """Whether each call copies all of a tile of PSUM that one transpose made and nobody else reads."""
    copies = body.kind_column([kind.leaves_psum for kind in body.kinds]) != 0
    turns = body.kind_column([_turns(kind) for kind in body.kinds]) != 0
    count = len(body.buffers)
    touched = body.rows[:, FIRST_WRITE:]
    uses = np.bincount(body.regions[touched[touched >= 0], BUFFER], minlength=count)
    made = np.zeros(count, bool)
    made[body.regions[body.rows[turns, FIRST_WRITE], BUFFER]] = True
    source = np.maximum(body.rows[:, FIRST_READ], 0)
    tile = body.regions[source, BUFFER]
    return np.asarray(copies & body.covers_tile[source] & (uses[tile] == 2) & made[tile])


def _turns(kind: Kind) -> bool:
    return bool(kind.steps) and kind.steps[-1].opcode is Opcode.TRANSPOSE


def _shares(body: Body, row: Ints) -> list[Ints]:
    """The copies of a row in groups that become one; none where they are too wide."""
    kind = body.kinds[int(body.rows[row[0], KIND])]
    tile = int(body.regions[body.rows[row[0], FIRST_READ], BUFFER])
    fitting = max(body.core.psum_bank_bytes // int(body.buffers.pitch_bytes[tile]), 1)
    count = min(len(row), fitting)
    if count < 2 or count * kind.steps[0].elements > _WIDEST:
        return []
    return [part for part in np.split(row, range(count, len(row), count)) if len(part) > 1]


def _kind_of_several(kind: Kind, count: int) -> Kind:
    step = replace(kind.steps[0], elements=kind.steps[0].elements * count)
    return replace(kind, steps=(step,), straight=False, tiles=kind.tiles * count)
