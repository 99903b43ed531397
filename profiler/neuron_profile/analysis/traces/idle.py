"""Why the streams of an imported trace were idle: nothing was launched, launching took its time, other."""

from __future__ import annotations

import numpy as np

from neuron_profile.analysis.remembered import remembered
from neuron_profile.analysis.spans import union
from neuron_profile.analysis.traces.device_spans import DeviceSpans, Kind, load_device_spans, stream_names
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

# Below it a gap between two kernels that were both launched is what starting one takes.
LAUNCH_GAP_NS = 30_000


@frozen
class StreamTime:
    """One stream from its first to its last span; busy and idle times add up to `window_ns`.

    Attributes:
        host_ns: Idle, and the next kernel had not been launched when the last one ended.
        launch_ns: Idle for less than `LAUNCH_GAP_NS` although it had been.
        other_ns: Idle for another reason: another stream, an event.
    """

    process: int
    stream: str
    window_ns: int
    busy_ns: int
    host_ns: int
    launch_ns: int
    other_ns: int


@remembered
def find_stream_times(profile: Profile) -> tuple[StreamTime, ...]:
    """Streams by process and number; () where nothing ran on a device."""
    spans = load_device_spans(profile)
    names = stream_names(profile)
    found = []
    for stream in spans.chosen(spans.kind != int(Kind.OTHER)).streams():
        process, track = int(stream.process[0]), int(stream.track[0])
        found.append(stream_time(process, names.get((process, track), str(track)), stream))
    return tuple(found)


def stream_time(process: int, name: str, spans: DeviceSpans) -> StreamTime:
    """Times of one stream.

    Args:
        spans: Its spans by start, with their launches.
    """
    starts, ends = union(spans.start_ns, spans.end_ns)
    gap_ns = starts[1:] - ends[:-1]
    next_span = np.searchsorted(spans.start_ns, starts[1:])
    host = spans.is_launched[next_span] & (spans.call_start_ns[next_span] > ends[:-1])
    launching = ~host & (gap_ns < LAUNCH_GAP_NS)
    busy_ns = int((ends - starts).sum())
    return StreamTime(
        process, name, int(ends[-1] - starts[0]), busy_ns, int(gap_ns[host].sum()),
        int(gap_ns[launching].sum()), int(gap_ns[~host & ~launching].sum()),
    )  # fmt: skip
