"""Where the time of an imported trace's devices went: computing, communication, copies, nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.remembered import remembered
from neuron_profile.analysis.spans import Union, length_ns, overlap_ns, union
from neuron_profile.analysis.traces.device_spans import DeviceSpans, Kind, load_device_spans
from neuron_profile.analysis.traces.stored_spans import distinct
from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile


@frozen
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


@frozen
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


@frozen
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
        for key in sorted(distinct(keys)[0].tolist())
    )


def process_time(process: int, spans: DeviceSpans) -> DeviceTime:
    """What all devices of a process together did; zeros without any span."""
    return _device_time(process, 0, spans) if len(spans) else DeviceTime(process, 0, 0, 0, 0, 0, 0, 0, 0)


@remembered
def find_kernels(profile: Profile) -> tuple[Kernel, ...]:
    """Kernels, collectives and copies by name."""
    spans = load_device_spans(profile)
    keys = (spans.process * len(spans.names) + spans.name) * len(Kind) + spans.kind
    group = distinct(keys)[1]
    one = np.zeros(group.max(initial=-1) + 1, np.int64)
    one[group] = np.arange(len(group))
    taken_ns = spans.end_ns - spans.start_ns
    columns = zip(one.tolist(), *(column.tolist() for column in _statistics(group, len(one), taken_ns)))
    found = [
        Kernel(
            int(spans.process[place]), spans.names[spans.name[place]], Kind(spans.kind[place]).name.lower(),
            *numbers,
        )
        for place, *numbers in columns
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda kernel: (-kernel.total_ns, kernel.name, kernel.process)))


def _statistics(group: Ints, count: int, values: Ints) -> tuple[npt.NDArray[Any], ...]:
    """Number, sum, least, greatest and sample deviation of the values of each group; (count,) each."""
    calls, total = np.bincount(group, minlength=count), np.zeros(count, np.int64)
    least, greatest = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    np.add.at(total, group, values)
    np.minimum.at(least, group, values)
    np.maximum.at(greatest, group, values)
    distances = np.bincount(group, weights=(values - (total / calls)[group]) ** 2, minlength=count)
    return calls, total, least, greatest, np.sqrt(distances / np.maximum(calls - 1, 1))


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
