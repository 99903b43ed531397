"""Draws lanes, compiled: the same as `pixels.lane_pixels`, without an array operation for each step.

Reads the mapped index by way of its tables (`lane_table`); holds no lock while it runs, so that several
ranges are drawn at once.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numba import literal_unroll, types

from neuron_tools.arrays import Ints
from neuron_tools.compiled import compiled_as, grown
from neuron_tools.profile.timeline.lane_table import (
    ABSENT,
    BASE,
    BASE_WINDOW,
    BLOCK_DURATION,
    BLOCK_NAME,
    BLOCK_ROW,
    BLOCK_RUN,
    BLOCK_START,
    BUSY_BEFORE,
    BUSY_NS,
    COUNT,
    DEPTH,
    END_NS,
    ENTRIES,
    FIRST,
    FIRST_BLOCK,
    FIRST_LEVEL,
    FIRST_ROW,
    FIRST_SPAN,
    LAST_BLOCK,
    LAST_LEVEL,
    LONGEST_DURATION,
    LONGEST_NAME,
    LONGEST_ROW,
    LONGEST_START,
    SHIFT,
    SPANS,
    START_NS,
    TRACK,
    UNTIL,
    WINDOW,
)

Words: TypeAlias = "tuple[npt.NDArray[Any], ...]"
"""The index as integers of 1, 2, 4 and 8 bytes."""
Columns: TypeAlias = "tuple[npt.NDArray[Any], ...]"
"""Track, depth, pixel, count, busy share, and row, start, duration and name of the span that shows."""
Floats: TypeAlias = "npt.NDArray[np.float64]"

_INT, _FLOAT, _BOOL, _NONE = types.int64, types.float64, types.boolean, types.none
_INTS, _FLOATS, _NOTES = types.int64[::1], types.float64[::1], types.int64[:, ::1]
_TABLE = types.Array(types.int64, 2, "C", readonly=True)
_WORDS = types.Tuple(
    [types.Array(kind, 1, "C", readonly=True) for kind in (types.uint8, types.uint16, types.uint32, _INT)]
)
_OUT = types.Tuple(
    [*[types.int32[::1]] * 3, types.int64[::1], types.float32[::1], *[types.int64[::1]] * 3, types.int32[::1]]
)
_NEVER = -(1 << 62)
_PIXEL, _START, _DURATION, _NAME, _ROW, _NUMBER, _COVER, _COVERED = range(8)
"""Rows of what is noted of each pixel of a lane: spans that begin; start, duration, name and row of the span
that shows; number of the longest that begins, number of the one that reaches in, and how far."""
_NOTE_KINDS = 8


@compiled_as(_INT(_WORDS, _INT, _INT, _INT))
def load(words: Words, offset: int, size: int, place: int) -> int:
    """The number at a place of an array of unsigned numbers of `size` bytes at a byte offset."""
    if size == 1:
        return int(words[0][offset + place])
    if size == 2:
        return int(words[1][offset // 2 + place])
    if size == 4:
        return int(words[2][offset // 4 + place])
    return int(words[3][offset // 8 + place])


@compiled_as(_INT(_WORDS, _TABLE, _INT, _INT, _INT))
def item(words: Words, table: Ints, row: int, column: int, place: int) -> int:
    """A number of the array that stands where three columns of a table say."""
    return load(words, table[row, column], table[row, column + 1], place)


@compiled_as(_INT(_WORDS, _TABLE, _INT, _INT, _INT))
def places_up_to(words: Words, table: Ints, row: int, column: int, value: int) -> int:
    """How many numbers of an ascending array are not above a value."""
    low, high = 0, table[row, column + 2]
    while low < high:
        middle = (low + high) // 2
        if item(words, table, row, column, middle) <= value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled_as(_INTS(_WORDS, _TABLE, _INT, _INT, _INT, _INT, _INT))
def unpacked(words: Words, table: Ints, row: int, column: int, low: int, high: int, base: int) -> Ints:
    """Numbers from place `low` to before `high` of a stored array, int64, each plus `base`."""
    offset, size = table[row, column], table[row, column + 1]
    numbers = np.empty(max(high - low, 0), np.int64)
    first = offset // size + low
    if size == 1:
        for place in range(len(numbers)):
            numbers[place] = np.int64(words[0][first + place]) + base
    elif size == 2:
        for place in range(len(numbers)):
            numbers[place] = np.int64(words[1][first + place]) + base
    elif size == 4:
        for place in range(len(numbers)):
            numbers[place] = np.int64(words[2][first + place]) + base
    else:
        for place in range(len(numbers)):
            numbers[place] = np.int64(words[3][first + place]) + base
    return numbers


@compiled_as(_INT(_TABLE, _INT, _INT, _INT, _INT))
def block_before(blocks: Ints, first: int, last: int, column: int, value: int) -> int:
    """The last block from `first` to before `last` whose column is not above a value; else the first."""
    while last - first > 1:
        middle = (first + last) // 2
        if blocks[middle, column] <= value:
            first = middle
        else:
            last = middle
    return first


@compiled_as(_NONE(_WORDS, _TABLE, _INT, _INT, _INTS, _INT, _INT, _INT, _INT, _NOTES, _INT))
def take(
    words: Words,
    table: Ints,
    row: int,
    column: int,
    places: Ints,
    first: int,
    begin: int,
    stop: int,
    base: int,
    notes: Ints,
    note: int,
) -> None:
    """Note numbers of a stored array, each plus `base`, for the pixels from `begin` to before `stop`.

    Args:
        places: Place of each pixel's number, counted from `first`; pixels with a negative one stay.
    """
    size = table[row, column + 1]
    at = table[row, column] // size - first
    if size == 1:
        for pixel in range(begin, stop):
            if places[pixel] >= 0:
                notes[note, pixel] = np.int64(words[0][at + places[pixel]]) + base
    elif size == 2:
        for pixel in range(begin, stop):
            if places[pixel] >= 0:
                notes[note, pixel] = np.int64(words[1][at + places[pixel]]) + base
    elif size == 4:
        for pixel in range(begin, stop):
            if places[pixel] >= 0:
                notes[note, pixel] = np.int64(words[2][at + places[pixel]]) + base
    else:
        for pixel in range(begin, stop):
            if places[pixel] >= 0:
                notes[note, pixel] = np.int64(words[3][at + places[pixel]]) + base


@compiled_as(_NONE(_WORDS, _TABLE, _INT, _INTS, _INT, _INT, _NOTES))
def take_rows(
    words: Words, blocks: Ints, block: int, numbers: Ints, begin: int, stop: int, notes: Ints
) -> None:
    """Note the table's rows of a block's spans, which stand in runs of consecutive rows."""
    first, first_row = blocks[block, FIRST], blocks[block, FIRST_ROW]
    last = numbers[begin]
    for pixel in range(begin, stop):
        last = max(last, numbers[pixel])
    low = max(places_up_to(words, blocks, block, BLOCK_RUN, numbers[begin] - first) - 1, 0)
    high = max(places_up_to(words, blocks, block, BLOCK_RUN, last - first), low + 1)
    runs = unpacked(words, blocks, block, BLOCK_RUN, low, high, 0)
    rows = unpacked(words, blocks, block, BLOCK_ROW, low, high, first_row)
    run = 0
    for pixel in range(begin, stop):
        if numbers[pixel] < 0:
            continue
        local = numbers[pixel] - first
        while run + 1 < len(runs) and runs[run + 1] <= local:
            run += 1
        notes[_ROW, pixel] = rows[run] + local - runs[run]


@compiled_as(_NONE(_WORDS, _TABLE, _INT, _INT, _INTS, _NOTES))
def note_spans(words: Words, blocks: Ints, block: int, last_block: int, numbers: Ints, notes: Ints) -> None:
    """Note start, duration, name and row of the span that each pixel shows.

    Args:
        block: A block at or before that of the first of them.
        numbers: int64, shape (pixels,): their numbers in the lane, ascending; negative where it is another.
    """
    begin = 0
    while begin < len(numbers):
        if numbers[begin] < 0:
            begin += 1
            continue
        block = block_before(blocks, block, last_block, FIRST, numbers[begin])
        first, row = blocks[block, FIRST], blocks[block, FIRST_ROW]
        stop = begin
        while stop < len(numbers) and numbers[stop] < first + blocks[block, COUNT]:
            if 0 <= numbers[stop] < first:
                break
            stop += 1
        if stop == begin:  # of a damaged index: not in any block from here on
            begin += 1
            continue
        base = blocks[block, BASE]
        take(words, blocks, block, BLOCK_START, numbers, first, begin, stop, base, notes, _START)
        take(words, blocks, block, BLOCK_DURATION, numbers, first, begin, stop, 0, notes, _DURATION)
        take(words, blocks, block, BLOCK_NAME, numbers, first, begin, stop, 0, notes, _NAME)
        if blocks[block, BLOCK_RUN] == ABSENT:
            take(words, blocks, block, BLOCK_ROW, numbers, first, begin, stop, row, notes, _ROW)
        else:
            take_rows(words, blocks, block, numbers, begin, stop, notes)
        begin = stop


@compiled_as(_NONE(_INTS, _NOTES, _FLOATS, _INTS))
def choose_spans(edges: Ints, notes: Ints, busy: Floats, numbers: Ints) -> None:
    """Choose the span that each pixel shows: one that covers half of it, or else the longest that begins."""
    for pixel in range(len(busy)):
        covered = notes[_COVERED, pixel]
        is_wide = 2 * covered >= edges[pixel + 1] - edges[pixel]
        shows_cover = covered > 0 and (notes[_PIXEL, pixel] == 0 or is_wide)
        numbers[pixel] = notes[_COVER, pixel] if shows_cover else notes[_NUMBER, pixel]


@compiled_as(_NONE(_WORDS, _TABLE, _TABLE, _INT, _INTS, _NOTES, _FLOATS))
def draw_spans(
    words: Words, lanes: Ints, blocks: Ints, lane: int, edges: Ints, notes: Ints, busy: Floats
) -> None:
    """Note what each pixel shows of the spans themselves."""
    notes[_NUMBER:] = ABSENT
    first_block, last_block = lanes[lane, FIRST_BLOCK], lanes[lane, LAST_BLOCK]
    start, end, pixels = edges[0], edges[-1], len(edges) - 1
    block = block_before(blocks, first_block, last_block, BASE, start)
    local = max(places_up_to(words, blocks, block, BLOCK_START, start - blocks[block, BASE]) - 1, 0)
    begun = 0
    for at in range(block, last_block):
        base, first = blocks[at, BASE], blocks[at, FIRST]
        if base >= end:
            break
        until = places_up_to(words, blocks, at, BLOCK_START, end - 1 - base)
        starts = unpacked(words, blocks, at, BLOCK_START, local, until, base)
        durations = unpacked(words, blocks, at, BLOCK_DURATION, local, until, 0)
        for place in range(len(starts)):
            span_start, duration, number = starts[place], durations[place], first + local + place
            pixel = 0
            if span_start >= start:
                while begun + 1 < pixels and edges[begun + 1] <= span_start:
                    begun += 1
                pixel = begun
                if notes[_PIXEL, pixel] == 0 or duration >= notes[_DURATION, pixel]:
                    notes[_DURATION, pixel] = duration
                    notes[_NUMBER, pixel] = number
                notes[_PIXEL, pixel] += 1
            span_end = span_start + duration
            while pixel < pixels and edges[pixel] < span_end:
                inside_until = min(span_end, edges[pixel + 1])
                busy[pixel] += inside_until - max(span_start, edges[pixel])
                if span_start < edges[pixel]:
                    notes[_COVER, pixel] = number
                    notes[_COVERED, pixel] = inside_until - edges[pixel]
                pixel += 1
        local = 0
    numbers = np.empty(pixels, np.int64)
    choose_spans(edges, notes, busy, numbers)
    note_spans(words, blocks, block, last_block, numbers, notes)


@compiled_as(_INTS(_WORDS, _TABLE, _INT, _INT, _INT, _INT, _INT))
def numbers_before(
    words: Words, levels: Ints, level: int, column: int, low: int, high: int, total: int
) -> Ints:
    """A running sum of a level from entry `low` to `high`; behind the last entry the lane's total."""
    if high < levels[level, ENTRIES]:
        return unpacked(words, levels, level, column, low, high + 1, 0)
    sums = grown(unpacked(words, levels, level, column, low, high, 0), high - low + 1)
    sums[-1] = total
    return sums


@compiled_as(_FLOAT(_INTS, _INTS, _INTS, _INT, _INT, _INT, _INT))
def busy_before(
    begin: Ints, busy_ns: Ints, until: Ints, edge: int, begun: int, aligned: int, shift: int
) -> float:
    """Busy time of a lane before an edge; inside a window, in proportion between its ends.

    Args:
        begin, until: When windows begin, and when their last spans end, (windows,).
        busy_ns: Busy time before each window and before what follows them, (windows + 1,).
        begun: The first window that does not begin before the edge.
        aligned: When the first window would begin if it were not cut to where spans begin.
    """
    before = busy_ns[begun]
    if begun == 0:
        return float(before)
    entry = begun - 1
    end = (aligned if entry == 0 else begin[entry]) + (np.int64(1) << shift)
    if edge >= end:
        return float(before - max(until[entry] - edge, 0.0))
    earlier = until[entry - 1] if entry > 0 else begin[entry]
    at_begin = busy_ns[entry] - max(earlier - begin[entry], 0)
    at_end = before - max(until[entry] - end, 0)
    return float(at_begin + (at_end - at_begin) * ((edge - begin[entry]) / (end - begin[entry])))


@compiled_as(_NONE(_WORDS, _TABLE, _TABLE, _TABLE, _INT, _INT, _INTS, _NOTES, _FLOATS))
def draw_windows(
    words: Words,
    lanes: Ints,
    blocks: Ints,
    levels: Ints,
    lane: int,
    level: int,
    edges: Ints,
    notes: Ints,
    busy: Floats,
) -> None:
    """Note what each pixel shows of a level's windows."""
    shift, base = levels[level, SHIFT], levels[level, BASE_WINDOW]
    low = max(places_up_to(words, levels, level, WINDOW, (edges[0] >> shift) - base) - 2, 0)
    high = places_up_to(words, levels, level, WINDOW, ((edges[-1] - 1) >> shift) - base)
    if high <= low:
        return
    first_span = numbers_before(words, levels, level, FIRST_SPAN, low, high, lanes[lane, SPANS])
    busy_ns = numbers_before(words, levels, level, BUSY_BEFORE, low, high, lanes[lane, BUSY_NS])
    begin = unpacked(words, levels, level, WINDOW, low, high, base)
    until = unpacked(words, levels, level, UNTIL, low, high, 0)
    longest = unpacked(words, levels, level, LONGEST_DURATION, low, high, 0)
    for entry in range(len(begin)):
        begin[entry] <<= shift
        until[entry] += begin[entry]
    aligned = begin[0]
    if low == 0:
        begin[0] = max(aligned, lanes[lane, START_NS])
    entry = 0
    while entry < len(begin) and begin[entry] < edges[0]:
        entry += 1
    before = busy_before(begin, busy_ns, until, edges[0], entry, aligned, shift)
    numbers, widest = np.full(len(busy), ABSENT, np.int64), np.full(len(busy), ABSENT, np.int64)
    for pixel in range(len(busy)):
        first, earlier, longest_entry, longest_ns = entry, before, ABSENT, np.int64(-1)
        edge = edges[pixel + 1]
        while entry < len(begin) and begin[entry] < edge:
            if longest[entry] >= longest_ns:
                longest_entry, longest_ns = entry, longest[entry]
            entry += 1
        before = busy_before(begin, busy_ns, until, edge, entry, aligned, shift)
        count = first_span[entry] - first_span[first]
        notes[_PIXEL, pixel], busy[pixel] = count, before - earlier
        if count == 0 and not busy[pixel] > 0.0:
            continue
        reach = (until[first - 1] if first > 0 else _NEVER) - edges[pixel]
        is_wide = first == entry or 2 * min(reach, edge - edges[pixel]) >= edge - edges[pixel]
        if is_wide and 0 < reach <= longest[first - 1]:
            numbers[pixel] = min(max(first_span[first] - 1, 0), lanes[lane, SPANS] - 1)
            continue
        widest[pixel] = longest_entry if longest_entry != ABSENT else max(first - 1, 0)
        notes[_DURATION, pixel] = longest[widest[pixel]]
    pixels = len(busy)
    begin[0] = aligned
    take(words, levels, level, LONGEST_START, widest, -low, 0, pixels, 0, notes, _START)
    take(words, levels, level, LONGEST_NAME, widest, -low, 0, pixels, 0, notes, _NAME)
    take(words, levels, level, LONGEST_ROW, widest, -low, 0, pixels, 0, notes, _ROW)
    for pixel in range(pixels):
        if widest[pixel] >= 0:
            notes[_START, pixel] += begin[widest[pixel]]
    note_spans(words, blocks, lanes[lane, FIRST_BLOCK], lanes[lane, LAST_BLOCK], numbers, notes)


@compiled_as(_BOOL(_WORDS, _TABLE, _TABLE, _TABLE, _INT, _INTS, _NOTES, _FLOATS))
def draw_lane(
    words: Words, lanes: Ints, blocks: Ints, levels: Ints, lane: int, edges: Ints, notes: Ints, busy: Floats
) -> bool:
    """Note what each pixel shows of a lane; False where nothing of it lies between the edges."""
    start, end = edges[0], edges[-1]
    lane_start = lanes[lane, START_NS]
    if end <= lane_start or start >= max(lanes[lane, END_NS], lane_start + 1):
        return False
    notes[_PIXEL] = 0
    busy[:] = 0.0
    pixel_ns = (end - start) / (len(edges) - 1)
    level = ABSENT
    for place in range(lanes[lane, FIRST_LEVEL], lanes[lane, LAST_LEVEL]):
        if np.int64(1) << levels[place, SHIFT] <= pixel_ns:
            level = place
    if level == ABSENT:
        draw_spans(words, lanes, blocks, lane, edges, notes, busy)
    else:
        draw_windows(words, lanes, blocks, levels, lane, level, edges, notes, busy)
    return True


@compiled_as(_NONE(_NOTES, _FLOATS, _NOTES, _FLOATS))
def fold(notes: Ints, busy: Floats, folded: Ints, folded_busy: Floats) -> None:
    """Add a lane to those above it: counts add up, the busiest share and the longest span stay."""
    for pixel in range(len(busy)):
        if notes[_PIXEL, pixel] == 0 and not busy[pixel] > 0.0:
            continue
        is_first = folded[_PIXEL, pixel] == 0 and not folded_busy[pixel] > 0.0
        folded[_PIXEL, pixel] += notes[_PIXEL, pixel]
        folded_busy[pixel] = max(folded_busy[pixel], busy[pixel])
        if is_first or notes[_DURATION, pixel] > folded[_DURATION, pixel]:
            for note in range(_START, _ROW + 1):
                folded[note, pixel] = notes[note, pixel]


@compiled_as(_INT(_INT, _INT, _INTS, _NOTES, _FLOATS, _OUT, _INT))
def emit(track: int, depth: int, edges: Ints, notes: Ints, busy: Floats, out: Columns, filled: int) -> int:
    """Append the pixels in which anything is to `out`; how many rows are filled then."""
    for pixel in range(len(busy)):
        if notes[_PIXEL, pixel] == 0 and not busy[pixel] > 0.0:
            continue
        width = max(edges[pixel + 1] - edges[pixel], 1)
        out[0][filled] = track
        out[1][filled] = depth
        out[2][filled] = pixel
        out[3][filled] = notes[_PIXEL, pixel]
        out[4][filled] = min(busy[pixel] / width, 1.0)
        out[5][filled] = notes[_ROW, pixel]
        out[6][filled] = notes[_START, pixel]
        out[7][filled] = notes[_DURATION, pixel]
        out[8][filled] = notes[_NAME, pixel]
        filled += 1
    return filled


@compiled_as(_INT(_WORDS, _TABLE, _TABLE, _TABLE, _INTS, _INT, _INTS, _OUT, _INT))
def draw(
    words: Words,
    lanes: Ints,
    blocks: Ints,
    levels: Ints,
    chosen: Ints,
    deepest: int,
    edges: Ints,
    out: Columns,
    filled: int,
) -> int:
    """Draw lanes.

    Args:
        lanes, blocks, levels: Of the `LaneTable`.
        chosen: Rows of `lanes`, those of a track together and by depth.
        deepest: Lanes of this depth and deeper ones of a track are folded into one.
        edges: int64, shape (pixels + 1,).
        out: Arrays of one length, with room for all pixels of each lane.
        filled: Row of `out` to begin with.

    Returns:
        How far `out` is filled.
    """
    pixels = len(edges) - 1
    notes = np.empty((_NOTE_KINDS, pixels), np.int64)
    folded = np.empty((_NOTE_KINDS, pixels), np.int64)
    busy, folded_busy = np.empty(pixels, np.float64), np.empty(pixels, np.float64)
    place = 0
    while place < len(chosen):
        track, depth = lanes[chosen[place], TRACK], lanes[chosen[place], DEPTH]
        if depth < deepest:
            if draw_lane(words, lanes, blocks, levels, chosen[place], edges, notes, busy):
                filled = emit(track, depth, edges, notes, busy, out, filled)
            place += 1
            continue
        folded[_PIXEL] = 0
        folded_busy[:] = 0.0
        while place < len(chosen) and lanes[chosen[place], TRACK] == track:
            if draw_lane(words, lanes, blocks, levels, chosen[place], edges, notes, busy):
                fold(notes, busy, folded, folded_busy)
            place += 1
        filled = emit(track, deepest, edges, folded, folded_busy, out, filled)
    return filled


@compiled_as(_NONE(_OUT, _INT, _INT, _INT))
def close_gap(out: Columns, filled: int, begin: int, end: int) -> None:
    """Move the rows from `begin` to before `end` down, behind those that are filled."""
    if begin == filled:
        return
    for column in literal_unroll(out):
        for place in range(end - begin):
            column[filled + place] = column[begin + place]
