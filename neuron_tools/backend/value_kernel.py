"""Compiled search for buffers that hold the same: what was loaded, turned and copied once already."""

from __future__ import annotations

import numpy as np

from neuron_tools.arrays import Bools, Int32s, Ints
from neuron_tools.compiled import compiled, compiled_part

MOVES, TURNS, COMPUTES = 1, 2, 3
"""What a call does that is followed: it moves, it moves and turns, it computes element by element."""


@compiled_part
def _mixed(value: int, other: int) -> int:
    """Two numbers made into one, which others hardly give."""
    mixed = (value * np.int64(6364136223846793005) + other) * np.int64(-7046029254386353131)
    return int(mixed ^ (mixed >> np.int64(29)))


@compiled_part
def _box(region: Int32s) -> int:
    value = np.int64(region[1])
    for column in range(2, 5):
        value = _mixed(value, np.int64(region[column]))
    return int(value)


@compiled
def equal_buffers(
    rows: Int32s, regions: Int32s, does: Ints, on_chip: Bools, constant: Bools, area: Ints
) -> Ints:
    """The first buffer that holds what each holds; itself where there is none before it.

    A buffer is followed where only calls that `does` names write it, none of them after somebody has read it:
    loads of tensors that the kernel never writes, and copies, sums and transposes of buffers that are
    followed, but no transposes of what was computed.

    Args:
        rows: (calls, COLUMNS).
        regions: (regions, 5).
        does: (calls,) MOVES, TURNS or COMPUTES; 0: anything else.
        on_chip: (buffers,) whether each lies in SBUF or PSUM.
        constant: (buffers,) whether each lies in HBM and is never written.
        area: (buffers,) bytes of each, over all lines.
    """
    buffers = area.shape[0]
    calls = rows.shape[0]
    first_read = np.full(buffers, calls, np.int64)
    followed = on_chip.copy()
    written = np.zeros(buffers, np.int64)
    for row in range(calls):
        for slot in range(3, 9):
            region = rows[row, slot]
            if region < 0:
                continue
            buffer = regions[region, 0]
            if slot >= 5:
                first_read[buffer] = min(first_read[buffer], row)
                continue
            size = np.int64(regions[region, 2] - regions[region, 1])
            written[buffer] += size * np.int64(regions[region, 4] - regions[region, 3])
            if does[row] == 0 or slot != 3 or first_read[buffer] < row or written[buffer] > area[buffer]:
                followed[buffer] = False
    slots = 16
    while slots < 2 * buffers:
        slots *= 2
    table = np.full(slots, -1, np.int64)
    value = np.zeros(buffers, np.int64)
    same = np.arange(buffers)
    known = np.zeros(buffers, np.bool_)
    computed = np.zeros(buffers, np.bool_)
    for row in range(calls):
        inputs = np.int64(17)
        whole = True
        new = does[row] == COMPUTES
        for slot in range(5, 9):
            region = rows[row, slot]
            if region < 0:
                continue
            buffer = regions[region, 0]
            if not on_chip[buffer]:
                whole = whole and constant[buffer]
            elif not followed[buffer]:
                whole = False
            elif not known[buffer]:
                known[buffer] = True
                place = value[buffer] & (slots - 1)
                while table[place] >= 0:
                    if value[table[place]] == value[buffer] and area[table[place]] == area[buffer]:
                        same[buffer] = table[place]
                        break
                    place = (place + 1) & (slots - 1)
                if table[place] < 0:
                    table[place] = buffer
            new = new or computed[buffer]
            inputs = _mixed(_mixed(inputs, same[buffer]), _box(regions[region]))
        target = rows[row, 3]
        if target >= 0 and does[row] > 0:
            buffer = regions[target, 0]
            if whole and not (new and does[row] == TURNS):
                computed[buffer] = computed[buffer] or new
                value[buffer] = _mixed(
                    _mixed(_mixed(value[buffer], np.int64(rows[row, 0])), _box(regions[target])), inputs
                )
            else:
                followed[buffer] = False
    return same
