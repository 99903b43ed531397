"""Fills: a zeroed accumulator vanishes, any other fill stands just before what uses the tile.

In traces of fused attention the line that zeroes the PSUM accumulator has no instruction: the first matmul of
the accumulation overwrites instead.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neuron_tools.backend.body import KIND, Body
from neuron_tools.backend.kinds import Kind
from neuron_tools.backend.schedule import add_kind
from neuron_tools.records.program import Flag, Memory, Opcode


def drop_fills(body: Body) -> Body:
    """The body with fills dropped or moved to where their tiles are used."""
    from neuron_tools.backend.fill_kernel import SUNK, follow_fills
    from neuron_tools.backend.spill_kernel import uses_of

    zeroes = body.kind_column([_fills(kind) and kind.constant == 0.0 for kind in body.kinds])
    fills = body.kind_column([_fills(kind) for kind in body.kinds]) != 0
    if not len(body) or not fills.any():
        return body
    start, uses = uses_of(body.rows, body.regions, len(body.buffers))
    adds = body.kind_column([_adds(kind) for kind in body.kinds]) != 0
    buffers = body.buffers
    what, target, writes = follow_fills(
        body.rows, body.regions, fills, adds & bool(zeroes.any()), buffers.lines * buffers.pitch_bytes, start,
        uses,
    )  # fmt: skip
    what[(what == 0) & (zeroes == 0)] = SUNK
    kinds, rows = list(body.kinds), body.rows.copy()
    writes &= _follows_dropped(body, what)
    for number in np.unique(rows[writes, KIND]).tolist():
        rows[writes & (rows[:, KIND] == number), KIND] = add_kind(kinds, _overwriting(kinds[number]))
    place = np.where(what == SUNK, 2 * target - 1, 2 * np.arange(len(rows)))
    order = np.argsort(place, kind="stable")
    return replace(body, rows=rows, kinds=kinds).ordered_by(order[what[order] != 0])


def _follows_dropped(body: Body, what: np.ndarray) -> np.ndarray:
    """Whether the tile that each call writes was filled by a call that fell away."""
    dropped = np.zeros(len(body.buffers), bool)
    dropped[body.regions[body.rows[what == 0, 3], 0]] = True
    written = body.rows[:, 3]
    return np.where(written >= 0, dropped[body.regions[written, 0]], False)


def _fills(kind: Kind) -> bool:
    return len(kind.steps) == 1 and kind.steps[0].opcode is Opcode.MEMSET and kind.constant is not None


def _adds(kind: Kind) -> bool:
    """Whether it is a matmul that adds to what PSUM holds."""
    products = [step for step in kind.steps if step.opcode is Opcode.MATMUL]
    return (
        bool(products)
        and products[0].destination_memory is Memory.PSUM
        and Flag.ACCUMULATE in products[0].flags
    )


def _overwriting(kind: Kind) -> Kind:
    """The matmul without the addition: its first pass overwrites."""
    steps = list(kind.steps)
    for row, step in enumerate(steps):
        if step.opcode is Opcode.MATMUL:
            steps[row] = replace(step, flags=step.flags & ~Flag.ACCUMULATE)
            break
    return replace(kind, steps=tuple(steps))
