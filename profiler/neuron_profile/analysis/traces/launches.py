"""Queues of an imported trace's streams: how much was launched and had not begun, and how long that took."""

from __future__ import annotations

import numpy as np

from neuron_profile.analysis.remembered import remembered
from neuron_profile.analysis.traces.device_spans import DeviceSpans, Kind, load_device_spans, stream_names
from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile


@frozen
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
    spans, names = load_device_spans(profile), stream_names(profile)
    found = []
    for stream in spans.chosen(spans.is_launched & (spans.kind != int(Kind.OTHER))).streams():
        key = int(stream.process[0]), int(stream.track[0])
        found.append(_queue(key[0], names.get(key, str(key[1])), stream))
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


def _queue(process: int, name: str, stream: DeviceSpans) -> StreamQueue:
    launched, call_end = stream.call_start_ns, stream.call_end_ns
    times, waiting = waiting_over_time(launched, stream.start_ns)
    delays = launch_delays(call_end, stream.start_ns)
    lasted = int(times[-1] - times[0])
    held = int((waiting[:-1] * np.diff(times)).sum())
    return StreamQueue(
        process, name, len(stream), held / lasted if lasted else 0.0, int(waiting.max()),
        float(np.median(delays)), float(np.percentile(delays, 99)),
        int(np.count_nonzero(call_end - launched > stream.end_ns - stream.start_ns)),
        int((call_end - launched).sum()),
    )  # fmt: skip
