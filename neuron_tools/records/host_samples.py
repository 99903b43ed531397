"""Samples of what the host's threads do, as a captured process writes them beside its log.

A tick is one look at all threads of a process: one record each, and all of a tick have its times, which
reach from the tick before to this one. `STACKS_FILE` says what the stacks' numbers stand for, one JSON object
a line, before the first record that refers to them. A forked child writes files of its own, named after its
process number, into its parent's folder; its virtual times mean nothing, its wall times are its parent's.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

INTERVAL_NS = 10_000_000
"""Virtual time from one tick to the next, where nothing keeps the sampler."""
SAMPLES_FILE = "samples.bin"
STACKS_FILE = "samples.jsonl"


class SampleKind(IntEnum):
    """What a record is."""

    THREAD = 0  # one thread of a tick
    COLLECTION = 1  # garbage was collected from start to end, on this thread


SAMPLE_DTYPE = np.dtype(
    [
        ("kind", "u1"),
        ("blocked", "u1"),  # no thread was running Python: it waited
        ("main", "u1"),  # it is the main thread's
        ("padding", "u1"),
        ("tick", "u4"),
        ("thread", "u4"),  # ordinal, 0 = the main thread
        ("stack", "u4"),
        ("start_ns", "i8"),  # virtual host time
        ("end_ns", "i8"),
        ("wall_start_ns", "i8"),  # of the system's monotonic clock
        ("wall_end_ns", "i8"),
    ]
)
assert SAMPLE_DTYPE.itemsize == 48
