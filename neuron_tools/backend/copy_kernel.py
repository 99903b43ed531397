"""Compiled search for stores that are overwritten unread, and for copies whose two ends can share a place."""

from __future__ import annotations

import numpy as np

from neuron_tools.arrays import Bools, Int32s, Ints
from neuron_tools.compiled import compiled


@compiled
def _area(region: Int32s) -> int:
    return int(region[2] - region[1]) * int(region[4] - region[3])


@compiled
def overwritten(rows: Int32s, regions: Int32s, covering: Bools, kept: Bools, area: Ints) -> Bools:
    """Calls whose whole effect a later call overwrites before anybody reads of the buffer.

    Args:
        rows: (calls, COLUMNS).
        regions: (regions, 5).
        covering: (calls,) whether each only writes, every byte of its region.
        kept: (buffers,) whether every store to each counts.
        area: (buffers,) bytes of each, over all lines.
    """
    count = rows.shape[0]
    dead = np.zeros(count, np.bool_)
    needed = np.ones(area.shape[0], np.bool_)
    for step in range(count):
        row = count - 1 - step
        target = rows[row, 3]
        if covering[row] and target >= 0 and rows[row, 4] < 0:
            buffer = regions[target, 0]
            if not kept[buffer]:
                if not needed[buffer]:
                    dead[row] = True
                    continue
                if _area(regions[target]) == area[buffer]:
                    needed[buffer] = False
        else:
            for slot in range(3, 5):
                if rows[row, slot] >= 0:
                    needed[regions[rows[row, slot], 0]] = True
        for slot in range(5, 9):
            if rows[row, slot] >= 0:
                needed[regions[rows[row, slot], 0]] = True
    return dead


@compiled
def _lives(rows: Int32s, regions: Int32s, buffers: int) -> tuple[Ints, Ints]:
    """The first and the last call of each buffer; (calls, -1) of one that none names."""
    first, last = np.full(buffers, rows.shape[0], np.int64), np.full(buffers, -1, np.int64)
    for row in range(rows.shape[0]):
        for slot in range(3, 9):
            region = rows[row, slot]
            if region >= 0:
                buffer = regions[region, 0]
                first[buffer] = min(first[buffer], row)
                last[buffer] = row
    return first, last


@compiled
def join_copies(
    rows: Int32s,
    regions: Int32s,
    straight: Bools,
    free: Bools,
    form: Ints,
    area: Ints,
) -> tuple[Ints, Bools]:
    """The buffer that each becomes part of, and the copies that fall away so.

    A copy falls away where it is the last use of all of one buffer and the first of all of another.

    Args:
        rows: (calls, COLUMNS).
        regions: (regions, 5).
        straight: (calls,) whether each copies bit for bit and keeps the layout.
        free: (buffers,) whether each may share its place.
        form: (buffers, n) what two buffers must have in common.
        area: (buffers,) bytes of each, over all lines.
    """
    count, buffers = rows.shape[0], area.shape[0]
    first, last = _lives(rows, regions, buffers)
    same = np.arange(buffers)
    dropped = np.zeros(count, np.bool_)
    for row in range(count):
        if not straight[row]:
            continue
        target, source = rows[row, 3], rows[row, 5]
        into, whole = regions[target, 0], regions[source, 0]
        root = same[whole]
        if not (free[into] and free[root]) or first[into] != row or last[root] != row or into == root:
            continue
        if _area(regions[target]) != area[into] or _area(regions[source]) != area[root]:
            continue
        if not (form[into] == form[root]).all():
            continue
        same[into] = root
        last[root] = last[into]
        dropped[row] = True
    return same, dropped


@compiled
def join_results(
    rows: Int32s,
    regions: Int32s,
    elementwise: Bools,
    free: Bools,
    gives: Bools,
    form: Ints,
    area: Ints,
) -> Ints:
    """The buffer that each becomes part of: results become part of an operand that ends with them.

    Args:
        rows: (calls, COLUMNS).
        regions: (regions, 5).
        elementwise: (calls,) whether each reads an element before it writes the one in its place.
        gives: (buffers,) whether a result may take the place of each.
        free, form, area: As for `join_copies`.
    """
    count, buffers = rows.shape[0], area.shape[0]
    first, last = _lives(rows, regions, buffers)
    same = np.arange(buffers)
    for row in range(count):
        if not elementwise[row] or rows[row, 3] < 0:
            continue
        target = rows[row, 3]
        into = regions[target, 0]
        if not free[into] or first[into] != row or _area(regions[target]) != area[into]:
            continue
        for slot in range(5, 9):
            source = rows[row, slot]
            if source < 0:
                continue
            root = same[regions[source, 0]]
            if root == into or not gives[root] or last[root] != row or not (form[into] == form[root]).all():
                continue
            if _area(regions[source]) != area[root]:
                continue
            same[into] = root
            last[root] = last[into]
            break
    return same
