"""Queues of an imported trace's streams: how much was launched and had not begun, and how long that took."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_profile.analysis.remembered import remembered
from neuron_profile.analysis.traces.device_spans import DEVICE_SPANS, Kind, stream_names
from neuron_tools.profile.reader import Profile

Ints = npt.NDArray[np.int64]
_LAUNCHED = f"""
WITH {DEVICE_SPANS}, calls AS (
    SELECT span.process_idx AS process, span.correlation_id, min(span.start_ts) AS call_start,
        min_by(span.end_ts, span.start_ts) AS call_end
    FROM TraceSpan span JOIN TraceTrack track
        ON track.track_idx = span.track_idx AND track.process_idx = span.process_idx
    WHERE track.device_idx IS NULL AND span.correlation_id IS NOT NULL GROUP BY ALL
)
SELECT device.process, track, call_start, call_end, start_ts, end_ts
FROM device JOIN kinds USING (name, category)
JOIN calls ON calls.process = device.process AND calls.correlation_id = device.correlation_id
WHERE kind != {int(Kind.OTHER)} ORDER BY device.process, track, call_start
"""


@dataclass(frozen=True, slots=True)
class StreamQueue:
    """What was launched on one stream; a launch counts from the start of its host call.

    Attributes:
        launches: Kernels, copies and fills whose host call is in the trace.
        mean_waiting: Launched and not begun, mean over time.
        most_waiting: The most at once.
        median_delay_ns, slowest_delay_ns: From the end of the call to the start on the device; the second is
            longer than 99 of 100.
        short: Launches that took the host longer than the device.
        call_ns: What the host spent in the calls.
    """

    process: int
    stream: str
    launches: int
    mean_waiting: float
    most_waiting: int
    median_delay_ns: float
    slowest_delay_ns: float
    short: int
    call_ns: int


@remembered
def find_stream_queues(profile: Profile) -> tuple[StreamQueue, ...]:
    """Streams by process and number; () where no launch is known."""
    rows = profile.query(_LAUNCHED)
    names = stream_names(profile)
    process, track = _ints(rows, "process"), _ints(rows, "track")
    changes = np.flatnonzero((process[1:] != process[:-1]) | (track[1:] != track[:-1])) + 1
    edges = [0, *changes.tolist(), len(process)] if len(process) else []
    found = []
    for begin, end in pairwise(edges):
        key = int(process[begin]), int(track[begin])
        found.append(_queue(key[0], names.get(key, str(key[1])), rows.slice(begin, end - begin)))
    return tuple(found)


def waiting_over_time(launched: Ints, begun: Ints) -> tuple[Ints, Ints]:
    """How many launches wait after each change of their number.

    A launch and a start at one moment change it in this order.

    Args:
        launched, begun: (launches,) int64 ns, when each was launched and when it began.

    Returns:
        Times, ascending, and the number from each on; (2 * launches,) int64.
    """
    times = np.concatenate([launched, begun])
    steps = np.repeat(np.array([1, -1], np.int64), len(launched))
    order = np.lexsort((-steps, times))
    return times[order], np.cumsum(steps[order])


def launch_delays(call_end: Ints, begun: Ints) -> Ints:
    """From the end of each host call to the start on the device, 0 where that began earlier; int64 ns."""
    delays: Ints = np.maximum(begun - call_end, 0)
    return delays


def _queue(process: int, stream: str, rows: pa.Table) -> StreamQueue:
    launched, call_end, begun, end = (
        _ints(rows, name) for name in ("call_start", "call_end", "start_ts", "end_ts")
    )
    times, waiting = waiting_over_time(launched, begun)
    delays = launch_delays(call_end, begun)
    lasted = int(times[-1] - times[0])
    held = int((waiting[:-1] * np.diff(times)).sum())
    return StreamQueue(
        process, stream, len(launched), held / lasted if lasted else 0.0, int(waiting.max()),
        float(np.median(delays)), float(np.percentile(delays, 99)),
        int(np.count_nonzero(call_end - launched > end - begun)), int((call_end - launched).sum()),
    )  # fmt: skip


def _ints(rows: pa.Table, name: str) -> Ints:
    values: Ints = rows[name].to_numpy().astype(np.int64, copy=False)
    return values
