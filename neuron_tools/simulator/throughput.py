"""DMA activity over time: throughput, outstanding transfers, unions of busy intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neuron_tools.arrays import Floats, Ints


class ThroughputSamples(NamedTuple):
    """Bytes moved per window.

    Attributes:
        time_ps: (windows,) int64, start of each window.
        bytes_per_second: (windows,) float64, mean over the window.
        total_bytes: (windows,) int64, moved from the beginning to the end of the window.
    """

    time_ps: Ints
    bytes_per_second: Floats
    total_bytes: Ints


def throughput(start_ps: Ints, end_ps: Ints, moved_bytes: Ints, window_ps: int) -> ThroughputSamples:
    """Throughput of transfers, each taken as even from its start to its end.

    Args:
        start_ps: (transfers,) first packet.
        end_ps: (transfers,) completion.
        moved_bytes: (transfers,) bytes.
        window_ps: Length of a window; > 0.

    Returns:
        Samples from 0 to the last completion; none if nothing moved. O(n log n + windows).
    """
    moves = moved_bytes > 0
    start, end, size = start_ps[moves], end_ps[moves], moved_bytes[moves].astype(np.float64)
    if not len(start):
        return ThroughputSamples(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))
    end = np.maximum(end, start + 1)
    rate = size / (end - start)
    time = np.concatenate([start, end])
    order = np.argsort(time, kind="stable")
    time = time[order]
    running = np.cumsum(np.concatenate([rate, -rate])[order])
    moved = np.concatenate([[0.0], np.cumsum(running[:-1] * np.diff(time))])
    edges = np.arange(0, int(end.max()) + window_ps, window_ps, dtype=np.int64)
    total = np.interp(edges, time, moved)
    total[-1] = size.sum()
    total = np.maximum.accumulate(np.clip(np.rint(total), 0, size.sum()))
    return ThroughputSamples(edges[:-1], np.diff(total) / (window_ps * 1e-12), total[1:].astype(np.int64))


def pending(trigger_ps: Ints, end_ps: Ints) -> tuple[Ints, Ints]:
    """(time_ps, count) of transfers triggered and not complete, after each change."""
    time = np.concatenate([trigger_ps, end_ps])
    change = np.concatenate([np.ones(len(trigger_ps), np.int64), -np.ones(len(end_ps), np.int64)])
    order = np.argsort(time, kind="stable")
    time, running = time[order], np.cumsum(change[order])
    last = np.append(np.diff(time) > 0, True)[: len(time)]
    return time[last], running[last]


def union(start_ps: Ints, end_ps: Ints) -> tuple[Ints, Ints]:
    """Disjoint intervals (start_ps, end_ps), ascending, covering the given ones; touching ones join."""
    kept = end_ps > start_ps
    start, end = start_ps[kept], end_ps[kept]
    if not len(start):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    first = np.concatenate([[True], start[1:] > end[:-1]])
    return start[first], np.append(end[:-1][first[1:]], end[-1])
