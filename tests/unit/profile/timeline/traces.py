"""Profiles of random spans, and what their timeline must show, computed span by span."""

import itertools

import numpy as np

from neuron_tools.profile.writer import ProfileWriter


def write_spans(directory, start, duration, *, track=0, names=None, chunks=1):
    """A profile of TraceSpan rows of one process, appended in `chunks` pieces."""
    count = len(start)
    track = np.broadcast_to(np.asarray(track, np.int32), count)
    with ProfileWriter(directory, {}) as writer:
        for part in np.array_split(np.arange(count), chunks):
            writer.append(
                "TraceSpan",
                {
                    "id": part,
                    "start_ts": start[part],
                    "end_ts": (start + duration)[part],
                    "duration_ns": duration[part],
                    "process_idx": np.zeros(len(part), np.int32),
                    "track_idx": track[part],
                    "name": [f"s{place}" if names is None else names[place] for place in part.tolist()],
                },
            )
    return directory


def brute_force(start, duration, edges):
    """Spans that begin in each pixel, and the busy share of each pixel, for spans that do not overlap."""
    count = np.histogram(start, edges)[0]
    count[-1] -= np.count_nonzero(start == edges[-1])
    end = start + duration
    overlap = [
        np.maximum(np.minimum(end, high) - np.maximum(start, low), 0).sum()
        for low, high in itertools.pairwise(edges)
    ]
    return count, np.array(overlap) / np.maximum(np.diff(edges), 1)


def serial_spans(seed, count, longest=1000):
    """Start and duration of spans one after another, in bursts with idle time between."""
    random = np.random.default_rng(seed)
    duration = random.integers(0, longest, count) // random.integers(1, 50, count)
    gap = random.integers(0, 20, count) + (random.random(count) < 0.01) * random.integers(0, 20_000, count)
    start = np.cumsum(gap + np.concatenate([[0], duration[:-1]]))
    return start.astype(np.int64), duration.astype(np.int64)
