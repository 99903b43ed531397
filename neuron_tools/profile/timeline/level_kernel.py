"""Windows over a lane, compiled: counted, and made of its spans one after another."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import types

from neuron_tools.arrays import Ints
from neuron_tools.compiled import compiled_as

SHIFT_STEP = 2
FIELDS = 8
WINDOW, FIRST, BUSY, UNTIL, LONGEST_START, LONGEST_DURATION, LONGEST_NAME, LONGEST_ROW = range(FIELDS)
"""What an entry tells of a window; see `levels.LevelsWriter`."""
NO_WINDOW = np.iinfo(np.int64).min

_NUMBERS = types.int64[::1]


@compiled_as(types.int64(_NUMBERS, types.int64, types.int64, _NUMBERS))
def count_changes(start_ns: Ints, shift: int, last: int, changes: Ints) -> int:
    """Count, by level, how often the window changes up to that level and no further.

    Args:
        start_ns: int64, ascending.
        shift: Windows of the finest level are 2**shift ns long.
        last: Window of the span before; NO_WINDOW for none.
        changes: int64, shape (levels,), counted on.

    Returns:
        Window of the last span.
    """
    for start in start_ns:
        window = start >> shift
        if window == last:
            continue
        level = len(changes) - 1
        if last != NO_WINDOW and window ^ last >= 0:
            level, differing = 0, (window ^ last) >> SHIFT_STEP
            while differing > 0 and level < len(changes) - 1:
                level, differing = level + 1, differing >> SHIFT_STEP
        changes[level] += 1
        last = window
    return last


@compiled_as(types.none(types.int64[:, ::1], types.int64[:, :, ::1], _NUMBERS))
def close_window(current: Ints, done: Ints, filled: Ints) -> None:
    """Move the last window of the finest level to those that are done, and into the window above it.

    That one is done too where the window does not belong to it, and so on.
    """
    top = 0
    while top + 1 < len(current) and current[top + 1, WINDOW] not in (
        NO_WINDOW,
        current[top, WINDOW] >> SHIFT_STEP,
    ):
        top += 1
    for level in range(top, -1, -1):
        for field in range(FIELDS):
            done[level, field, filled[level]] = current[level, field]
        filled[level] += 1
        above = level + 1
        if above == len(current):
            continue
        if level == top and current[above, WINDOW] != NO_WINDOW:
            current[above, UNTIL] = max(current[above, UNTIL], current[level, UNTIL])
            if current[level, LONGEST_DURATION] >= current[above, LONGEST_DURATION]:
                for field in range(LONGEST_START, FIELDS):
                    current[above, field] = current[level, field]
            continue
        for field in range(FIELDS):
            current[above, field] = current[level, field]
        current[above, WINDOW] = current[level, WINDOW] >> SHIFT_STEP


@compiled_as(types.none(types.int64[:, ::1], types.int64[:, :, ::1], _NUMBERS))
def close_all(current: Ints, done: Ints, filled: Ints) -> None:
    """Move the last window of every level to those that are done."""
    for level in range(len(current)):
        close_window(current[level:], done[level:], filled[level:])


@compiled_as(
    types.none(
        _NUMBERS,
        _NUMBERS,
        types.int32[::1],
        _NUMBERS,
        _NUMBERS,
        types.int64,
        _NUMBERS,
        types.int64[:, ::1],
        types.int64[:, :, ::1],
        _NUMBERS,
    )
)
def add_spans(
    start_ns: Ints,
    duration_ns: Ints,
    name: npt.NDArray[np.int32],
    runs: Ints,
    rows: Ints,
    shift: int,
    before: Ints,
    current: Ints,
    done: Ints,
    filled: Ints,
) -> None:
    """Put spans into windows; windows that are complete go to `done`.

    Args:
        start_ns, duration_ns, name: Of the spans, in order.
        runs, rows: Where runs of consecutive rows of the table begin among these spans, and their first rows.
        shift: Windows of the finest level are 2**shift ns long.
        before: int64, shape (2,): spans before these, and their duration; brought up to date.
        current: int64, shape (levels, FIELDS): the last window of each level; brought up to date.
        done: int64, shape (levels, FIELDS, room).
        filled: int64, shape (levels,): how many windows of each level are done; brought up to date.
    """
    run = 0
    for span in range(len(start_ns)):
        start, duration = start_ns[span], duration_ns[span]
        while run + 1 < len(runs) and runs[run + 1] <= span:
            run += 1
        window = start >> shift
        if window != current[0, WINDOW]:
            if current[0, WINDOW] != NO_WINDOW:
                close_window(current, done, filled)
            current[0, WINDOW], current[0, FIRST], current[0, BUSY] = window, before[0], before[1]
            current[0, UNTIL], current[0, LONGEST_DURATION] = start + duration, -1
        current[0, UNTIL] = max(current[0, UNTIL], start + duration)
        if duration >= current[0, LONGEST_DURATION]:
            current[0, LONGEST_START], current[0, LONGEST_DURATION] = start, duration
            current[0, LONGEST_NAME] = name[span]
            current[0, LONGEST_ROW] = rows[run] + span - runs[run]
        before[0] += 1
        before[1] += duration
