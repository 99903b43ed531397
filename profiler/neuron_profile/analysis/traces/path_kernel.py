"""Compiled kernels of the critical path of a trace: the walk back from its end, and what a thread was in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.compiled import compiled

ON_DEVICE, BETWEEN, LAUNCH, ON_HOST, WAITING = 0, 1, 2, 3, 4
"""What a stretch of the path is: a device span, the gap before it, its launch, a thread, a wait's end."""


class Device(NamedTuple):
    """Device spans: times, the span before on the stream, the launch and its thread; -1 = none."""

    start: Ints
    end: Ints
    before: Ints
    launch: Ints
    thread: Ints


class Waits(NamedTuple):
    """Host calls that waited for the device, by thread and end: `first` and `first + 1` bound each thread's.

    Attributes:
        end: End of the call.
        span: Device span whose end it waited for.
    """

    first: Ints
    end: Ints
    span: Ints


@compiled
def walk(
    device: Device, waits: Waits, span: int, thread: int, now: int, begin: int, main: int, path: Ints
) -> int:
    """Follow what each moment waited for, from the end of a device span or a thread back to the beginning.

    Args:
        span: Device span that the path ends with; -1 = it ends on `thread`.
        now: When it ends.
        begin: When the trace begins.
        main: Thread that others were started from.
        path: (most, 4) takes what, which (span or thread), from, to; latest first.

    Returns:
        Stretches that were written.
    """
    count = 0
    while now > begin and count + 3 <= len(path):
        if span >= 0:
            start = min(device.start[span], now)
            path[count, 0], path[count, 1], path[count, 2], path[count, 3] = ON_DEVICE, span, start, now
            count += 1
            now = start
            before, launch = device.before[span], device.launch[span]
            launched = launch >= 0 and launch <= now and device.thread[span] >= 0
            if before >= 0 and not (launched and device.end[before] <= launch):
                reached = min(device.end[before], now)
                path[count, 0], path[count, 1], path[count, 2], path[count, 3] = BETWEEN, span, reached, now
                count += 1
                now, span = reached, before
                continue
            if launched:
                path[count, 0], path[count, 1], path[count, 2], path[count, 3] = LAUNCH, span, launch, now
                count += 1
                now, thread = launch, device.thread[span]
            else:
                thread = main
            span = -1
            continue
        low, high = waits.first[thread], waits.first[thread + 1]
        place = low + np.searchsorted(waits.end[low:high], now, side="right") - 1
        if place < low:
            path[count, 0], path[count, 1], path[count, 2], path[count, 3] = ON_HOST, thread, begin, now
            count += 1
            break
        ended, waited = waits.end[place], waits.span[place]
        path[count, 0], path[count, 1], path[count, 2], path[count, 3] = ON_HOST, thread, ended, now
        count += 1
        reached = min(device.end[waited], ended)
        path[count, 0], path[count, 1], path[count, 2], path[count, 3] = WAITING, thread, reached, ended
        count += 1
        now, span = reached, waited
    return count


@compiled
def innermost(start: Ints, end: Ints, at: Ints, owner: Ints) -> int:
    """What a thread was in: stretches of time with the innermost span, -1 outside all.

    A span that reaches beyond the one around it (times are rounded, tracers miss the end of some calls) is
    taken to end with it.

    Args:
        start, end: Spans of one thread, by start, longer ones first.
        at, owner: (2 * spans + 1,) take the stretches: start of each, and its span.

    Returns:
        Stretches that were written; the last lasts for ever.
    """
    stack, until = np.empty(len(start) + 1, np.int64), np.empty(len(start) + 1, np.int64)
    depth = count = 0
    for span in range(len(start) + 1):
        now = start[span] if span < len(start) else np.iinfo(np.int64).max
        while depth and until[depth - 1] <= now:
            depth -= 1
            at[count], owner[count] = until[depth], stack[depth - 1] if depth else -1
            count += 1
        if span < len(start):
            at[count], owner[count] = now, span
            count += 1
            stack[depth] = span
            until[depth] = min(end[span], until[depth - 1]) if depth else end[span]
            depth += 1
    return count


@compiled
def spend(at: Ints, owner: Ints, low: Ints, high: Ints, spent: Ints) -> int:
    """Add to each span what it has of the stretches from `low` to `high`; returns what belongs to none."""
    nobody = 0
    for index in range(len(low)):
        place = np.searchsorted(at, low[index], side="right") - 1
        now = low[index]
        while now < high[index]:
            until = min(at[place + 1], high[index]) if place + 1 < len(at) else high[index]
            if place >= 0 and owner[place] >= 0:
                spent[owner[place]] += until - now
            else:
                nobody += until - now
            now = until
            place += 1
    return nobody
