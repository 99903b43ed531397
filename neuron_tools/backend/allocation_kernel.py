"""Compiled allocation of SBUF and PSUM: tiles in the order of their first use, next fit around the memory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.compiled import compiled, compiled_part, grown

LOWEST, NEXT, MATCHING = 0, 1, 2
"""Where the search for a place begins: at the bottom, behind the last tile, or with places of the size."""
PLACES = 2
"""Places at which the blocks of one loaded tensor take turns."""
_RECENT_ROWS = 64
"""A place that was in use so shortly before would make its next tile wait."""


@compiled
def live_ranges(
    rows: npt.NDArray[np.int32], regions: npt.NDArray[np.int32], buffers: int
) -> tuple[Ints, Ints]:
    """First and last row that touches each buffer (-1: none); shapes (buffers,)."""
    first = np.full(buffers, -1, np.int64)
    last = np.full(buffers, -1, np.int64)
    for row in range(rows.shape[0]):
        for slot in range(3, rows.shape[1]):
            region = rows[row, slot]
            if region >= 0:
                buffer = regions[region, 0]
                if first[buffer] < 0:
                    first[buffer] = row
                last[buffer] = row
    return first, last


@compiled
def allocate(
    order: Ints,
    first: Ints,
    last: Ints,
    size: Ints,
    fixed: Ints,
    capacity: int,
    bank: int,
    alignment: int,
    search: int,
    turns_of: Ints,
) -> tuple[Ints, Ints, Ints, int]:
    """Addresses of tiles, and whose place each takes over.

    Memory is a list of segments, each with the tile that held it last. A new tile takes the next run of
    segments whose tiles are over, searched from behind the last allocation on, so that memory is reused as
    late as possible. O(tiles x segments).

    Args:
        order: Tiles (buffer numbers) by first use.
        first: (buffers,) first row that touches it.
        last: (buffers,) last row.
        size: (buffers,) bytes of each partition.
        fixed: (buffers,) address given by the kernel, -1: none.
        capacity: Bytes of a partition.
        bank: Tiles no larger than this do not cross its multiples; 0: no banks.
        alignment: Addresses are multiples of this.
        search: LOWEST, NEXT or MATCHING.
        turns_of: (buffers,) tensor whose blocks take turns at `PLACES` places with NEXT; -1: none.

    Returns:
        (address (buffers,), predecessor pairs (n, 2): tile and the earlier tile whose place it takes, failed
        tile or -1 in a one-element array, bytes live when it failed).
    """
    address = np.full(size.shape[0], -1, np.int64)
    pairs = np.empty((max(order.shape[0] * 4, 16), 2), np.int64)
    pair_count = 0
    limit = 4096
    start = np.zeros(limit, np.int64)
    owner = np.full(limit, -1, np.int64)
    segments = 1
    pointer = 0
    failed = np.full(1, -1, np.int64)
    for tile in order:
        need = (size[tile] + alignment - 1) // alignment * alignment
        if need == 0:
            need = alignment
        now = first[tile]
        found = fixed[tile]
        if found >= 0:
            need = max(size[tile], 1)  # the kernel may have put another one right behind it
        else:
            if search == NEXT and bank == 0 and turns_of[tile] >= 0:
                found = _turn(start, owner, segments, capacity, last, now, need, turns_of, turns_of[tile])
            if found < 0 and search == MATCHING and bank == 0:
                found = _matching_fit(start, owner, segments, capacity, last, now, need)
            if found < 0:
                found = _next_fit(start, owner, segments, capacity, last, now, need, pointer, bank)
            if found < 0:
                found = _next_fit(start, owner, segments, capacity, last, now, need, 0, bank)
        if found < 0 or segments + 4 >= limit:
            failed[0] = tile
            break
        address[tile] = found
        pointer = (found + need + alignment - 1) // alignment * alignment if search == NEXT else 0
        if pointer >= capacity:
            pointer = 0
        end = found + need
        # predecessors: owners of the segments that it overlaps
        index = 0
        while index < segments:
            low = start[index]
            high = start[index + 1] if index + 1 < segments else capacity
            if low < end and found < high and owner[index] >= 0 and owner[index] != tile:
                repeated = (
                    pair_count > 0
                    and pairs[pair_count - 1, 0] == tile
                    and pairs[pair_count - 1, 1] == owner[index]
                )
                if not repeated:
                    if pair_count == pairs.shape[0]:
                        pairs = grown(pairs, pairs.shape[0] * 2)
                    pairs[pair_count, 0] = tile
                    pairs[pair_count, 1] = owner[index]
                    pair_count += 1
            index += 1
        segments = _replace(start, owner, segments, capacity, found, min(end, capacity), tile)
    live = 0
    if failed[0] >= 0:
        now = first[failed[0]]
        for index in range(segments):
            high = start[index + 1] if index + 1 < segments else capacity
            if owner[index] >= 0 and last[owner[index]] >= now:
                live += high - start[index]
    return address, pairs[:pair_count], failed, live


@compiled
def _turn(
    start: Ints, owner: Ints, segments: int, capacity: int, last: Ints, now: int,
    need: int, turns_of: Ints, tensor: int,
) -> int:  # fmt: skip
    """The longest free of a tensor's own places, where it has as many as it may; -1: take another."""
    places, best, since = 0, -1, np.int64(now)
    for index in range(segments):
        if owner[index] >= 0 and turns_of[owner[index]] == tensor:
            high = start[index + 1] if index + 1 < segments else capacity
            if high - start[index] == need:
                places += 1
                if last[owner[index]] < since:
                    best, since = start[index], last[owner[index]]
    return best if places >= PLACES else -1


@compiled_part
def _matching_fit(
    start: Ints, owner: Ints, segments: int, capacity: int, last: Ints, now: int, need: int
) -> int:
    """The place of exactly this size that is free longest, then the least one that holds it; -1: none.

    Places in use a few rows ago do not count, so that tiles of one size take turns at several.
    """
    exact, exact_since = -1, np.int64(now)
    least, least_room = -1, np.int64(capacity) + 1
    begin, room = -1, np.int64(0)
    for index in range(segments + 1):
        free, fresh = False, False
        low = capacity
        if index < segments:
            low = start[index]
            high = start[index + 1] if index + 1 < segments else capacity
            since = np.int64(-_RECENT_ROWS - 1) if owner[index] < 0 else last[owner[index]]
            free = since < now
            fresh = since < now - _RECENT_ROWS
            if owner[index] >= 0 and fresh and high - low == need and since < exact_since:
                exact, exact_since = low, since
        if free and fresh:
            if begin < 0:
                begin, room = low, np.int64(0)
            room += high - low
            continue
        if begin >= 0 and need <= room < least_room:
            least, least_room = begin, room
        begin = -1
    return exact if exact >= 0 else least


@compiled_part
def _next_fit(
    start: Ints, owner: Ints, segments: int, capacity: int, last: Ints, now: int,
    need: int, pointer: int, bank: int,
) -> int:  # fmt: skip
    """First address from `pointer` on where `need` bytes are free at row `now`; -1: nowhere."""
    begin = -1
    for index in range(segments):
        low = start[index]
        high = start[index + 1] if index + 1 < segments else capacity
        if high <= pointer:
            continue
        free = owner[index] < 0 or last[owner[index]] < now
        if not free:
            begin = -1
            continue
        if begin < 0:
            begin = max(low, pointer)
        while True:
            place = begin
            if bank > 0:
                if need > bank:
                    place = (place + bank - 1) // bank * bank
                elif place // bank != (place + need - 1) // bank:
                    place = (place // bank + 1) * bank
            if place + need <= high:
                return place
            break
    return -1


@compiled
def _replace(start: Ints, owner: Ints, segments: int, capacity: int, low: int, high: int, tile: int) -> int:
    """Give the bytes low .. high to a tile; returns the number of segments."""
    new_start = np.empty(segments + 3, np.int64)
    new_owner = np.empty(segments + 3, np.int64)
    count = 0
    placed = False
    for index in range(segments):
        begin = start[index]
        end = start[index + 1] if index + 1 < segments else capacity
        if begin < low:
            new_start[count], new_owner[count] = begin, owner[index]
            count += 1
        if not placed and end > low:
            new_start[count], new_owner[count] = low, tile
            count += 1
            placed = True
        if end > high and begin < capacity:
            tail = max(begin, high)
            if tail < end:
                new_start[count], new_owner[count] = tail, owner[index]
                count += 1
    # drop segments inside the new one that were re-added out of order
    for index in range(count):
        start[index], owner[index] = new_start[index], new_owner[index]
    return count
