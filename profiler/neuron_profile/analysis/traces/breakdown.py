"""Where the time of an imported trace's devices went: computing, communication, copies, nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuron_profile.analysis.remembered import remembered
from neuron_profile.analysis.spans import Union, length_ns, overlap_ns, union
from neuron_profile.analysis.traces.device_spans import DEVICE_SPANS, DeviceSpans, Kind, load_device_spans
from neuron_tools.profile.reader import Profile

_KERNELS = f"""
WITH {DEVICE_SPANS}
SELECT process, name, kind, count(*) AS calls, CAST(sum(end_ts - start_ts) AS BIGINT) AS total_ns,
    min(end_ts - start_ts) AS shortest_ns, max(end_ts - start_ts) AS longest_ns,
    coalesce(stddev_samp(end_ts - start_ts), 0) AS deviation_ns
FROM device JOIN kinds USING (name, category) GROUP BY ALL ORDER BY total_ns DESC, name, process
"""


@dataclass(frozen=True, slots=True)
class DeviceTime:
    """How a device spent the time from its first to its last span.

    The first four parts add up to `window_ns`.

    Attributes:
        computing_ns: At least one stream computed.
        exposed_communication_ns: Collectives and no computing.
        exposed_memory_ns: Copies and neither of these.
        idle_ns: None of the three, waits on the device included.
        communication_ns: Collectives, hidden or not.
        hidden_ns: Their part during which something computed.
    """

    process: int
    device_idx: int
    window_ns: int
    computing_ns: int
    exposed_communication_ns: int
    exposed_memory_ns: int
    idle_ns: int
    communication_ns: int
    hidden_ns: int

    @property
    def hidden_share(self) -> float:
        """Part of the communication that computing hides; 0 without communication."""
        return self.hidden_ns / self.communication_ns if self.communication_ns else 0.0


@dataclass(frozen=True, slots=True)
class Kernel:
    """All calls of one kernel in one process; `kind` is a name of `Kind` in lower case."""

    process: int
    name: str
    kind: str
    calls: int
    total_ns: int
    shortest_ns: int
    longest_ns: int
    deviation_ns: float

    @property
    def mean_ns(self) -> float:
        """Mean duration."""
        return self.total_ns / self.calls


@dataclass(frozen=True, slots=True)
class TraceBreakdown:
    """Device time by process, and kernels by falling time."""

    devices: tuple[DeviceTime, ...]
    kernels: tuple[Kernel, ...]


def break_down(profile: Profile) -> TraceBreakdown:
    """Device time and kernels of an imported trace; both empty where nothing ran on a device."""
    return TraceBreakdown(device_times(load_device_spans(profile)), find_kernels(profile))


def device_times(spans: DeviceSpans) -> tuple[DeviceTime, ...]:
    """Device time of each device of each process."""
    keys = spans.process << 32 | spans.device
    return tuple(
        _device_time(key >> 32, key & 0xFFFFFFFF, spans.chosen(keys == key))
        for key in np.unique(keys).tolist()
    )


def process_time(process: int, spans: DeviceSpans) -> DeviceTime:
    """What all devices of a process together did; zeros without any span."""
    return _device_time(process, 0, spans) if len(spans) else DeviceTime(process, 0, 0, 0, 0, 0, 0, 0, 0)


@remembered
def find_kernels(profile: Profile) -> tuple[Kernel, ...]:
    """Kernels, collectives and copies by name."""
    rows = profile.query(_KERNELS).to_pylist()
    return tuple(
        Kernel(
            **{**row, "kind": Kind(row["kind"]).name.lower(), "deviation_ns": _steady(row["deviation_ns"])}
        )
        for row in rows
    )


def _steady(value: float) -> float:
    """A number without its last digits, which hang on the order in which the database's threads add."""
    return float(f"{value:.9g}")


def _device_time(process: int, device: int, spans: DeviceSpans) -> DeviceTime:
    computing = _union(spans, Kind.COMPUTE)
    communication, memory = _union(spans, Kind.COMMUNICATION), _union(spans, Kind.MEMORY)
    busy_first = union(*(np.concatenate(pair) for pair in zip(computing, communication)))
    busy = union(*(np.concatenate(pair) for pair in zip(busy_first, memory)))
    window_ns = int(spans.end_ns.max() - spans.start_ns.min())
    computing_ns, first_ns, busy_ns = (length_ns(each) for each in (computing, busy_first, busy))
    return DeviceTime(
        process, device, window_ns, computing_ns, first_ns - computing_ns, busy_ns - first_ns,
        window_ns - busy_ns, length_ns(communication), overlap_ns(communication, computing),
    )  # fmt: skip


def _union(spans: DeviceSpans, kind: Kind) -> Union:
    chosen = spans.kind == int(kind)
    return union(spans.start_ns[chosen], spans.end_ns[chosen])
