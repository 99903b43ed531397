"""Compiled spilling: walks the calls in order, and evicts what was unused longest.

What HBM holds already is one transfer away from being back, anything else two: it counts as unused twice as
long. So does what takes more room than its transfer has bytes: a row of one partition is back at once.
"""

from __future__ import annotations

import numpy as np

from neuron_tools.arrays import Int32s, Ints
from neuron_tools.compiled import compiled, grown

SAVE, RELOAD, LOAD_AGAIN = 0, 1, 2
"""What is put in: a store of a buffer to HBM, its load from there, or the kernel's own load once more."""


@compiled
def uses_of(rows: Int32s, regions: Int32s, buffers: int) -> tuple[Ints, Ints]:
    """Rows that touch each buffer, in order and once each: (start (buffers + 1,), rows)."""
    start = np.zeros(buffers + 1, np.int64)
    latest = np.full(buffers, -1, np.int64)
    for turn in range(2):
        latest[:] = -1
        if turn == 1:
            for buffer in range(buffers):
                start[buffer + 1] += start[buffer]
            place = start[:-1].copy()
            found = np.empty(start[-1], np.int64)
        for row in range(rows.shape[0]):
            for slot in range(3, rows.shape[1]):
                region = rows[row, slot]
                if region < 0:
                    continue
                buffer = regions[region, 0]
                if latest[buffer] == row:
                    continue
                latest[buffer] = row
                if turn == 0:
                    start[buffer + 1] += 1
                else:
                    found[place[buffer]] = row
                    place[buffer] += 1
    return start, found


@compiled
def peak(start: Ints, uses: Ints, size: Ints, calls: int) -> int:
    """Most bytes that live at one time."""
    change = np.zeros(calls + 1, np.int64)
    for buffer in range(size.shape[0]):
        if start[buffer] < start[buffer + 1]:
            change[uses[start[buffer]]] += size[buffer]
            change[uses[start[buffer + 1] - 1] + 1] -= size[buffer]
    most, now = np.int64(0), np.int64(0)
    for row in range(calls):
        now += change[row]
        most = max(most, now)
    return int(most)


@compiled
def spill(
    rows: Int32s,
    regions: Int32s,
    size: Ints,
    start: Ints,
    uses: Ints,
    loaded_by: Ints,
    freed: Ints,
    capacity: int,
) -> tuple[Ints, Int32s, int]:
    """Which buffers leave the memory when, and come back when.

    Args:
        rows: (calls, COLUMNS).
        regions: (regions, 5).
        size: (buffers,) bytes of each partition; 0 for buffers of other memories or with a fixed place.
        start, uses: `uses_of`.
        loaded_by: (buffers,) the one load that fills a buffer with what HBM keeps; -1: there is none.
        freed: (buffers,) bytes of SBUF that each takes for one that a transfer moves: rows on few partitions
            take as much as whole tiles.
        capacity: Bytes of a partition that may be taken.

    Returns:
        (events (n, 4): before which row, what (SAVE, ...), buffer, version that it gives (RELOAD and
        LOAD_AGAIN) or ends (SAVE); versions (calls, slots): version of the buffer of each operand, 0 where it
        never left; the call whose own operands do not fit, or -1).
    """
    buffers, calls = size.shape[0], rows.shape[0]
    slots = rows.shape[1] - 3
    versions = np.zeros((calls, slots), np.int32)
    version = np.zeros(buffers, np.int32)
    place = start[:-1].copy()
    resident = np.zeros(buffers, np.bool_)
    saved, dirty = np.zeros(buffers, np.bool_), np.zeros(buffers, np.bool_)
    members = np.empty(buffers, np.int64)
    where = np.full(buffers, -1, np.int64)
    count, taken = 0, np.int64(0)
    events = np.empty((1024, 4), np.int64)
    used = 0
    for row in range(calls):
        for slot in range(slots):
            region = rows[row, 3 + slot]
            if region < 0:
                continue
            buffer = regions[region, 0]
            if size[buffer] == 0 or resident[buffer]:
                continue
            while taken + size[buffer] > capacity:
                victim, longest = np.int64(-1), np.int64(0)
                for index in range(count):
                    other = members[index]
                    if place[other] < start[other + 1] and uses[place[other]] > row:
                        unused = (row - uses[place[other] - 1]) * (1 if dirty[other] else 2) * freed[other]
                        if unused > longest:
                            victim, longest = other, unused
                if victim < 0:
                    return events[:used], versions, row
                if used + 4 > events.shape[0]:
                    events = grown(events, events.shape[0] * 2)
                if dirty[victim]:
                    events[used, 0], events[used, 1] = row, SAVE
                    events[used, 2], events[used, 3] = victim, version[victim]
                    used += 1
                    dirty[victim], saved[victim] = False, True
                resident[victim] = False
                taken -= size[victim]
                count -= 1
                members[where[victim]] = members[count]
                where[members[count]] = where[victim]
            resident[buffer] = True
            taken += size[buffer]
            where[buffer] = count
            members[count] = buffer
            count += 1
            if place[buffer] > start[buffer]:  # it was here before
                version[buffer] += 1
                if used + 4 > events.shape[0]:
                    events = grown(events, events.shape[0] * 2)
                events[used, 0] = row
                events[used, 1] = RELOAD if saved[buffer] else LOAD_AGAIN
                events[used, 2], events[used, 3] = buffer, version[buffer]
                used += 1
        for slot in range(slots):
            region = rows[row, 3 + slot]
            if region < 0:
                continue
            buffer = regions[region, 0]
            versions[row, slot] = version[buffer]
            if slot < 2 and row != loaded_by[buffer]:
                dirty[buffer] = True
            if size[buffer] == 0:
                continue
            while place[buffer] < start[buffer + 1] and uses[place[buffer]] <= row:
                place[buffer] += 1
            if place[buffer] == start[buffer + 1] and resident[buffer]:
                resident[buffer] = False
                taken -= size[buffer]
                count -= 1
                members[where[buffer]] = members[count]
                where[members[count]] = where[buffer]
    return events[:used], versions, -1
