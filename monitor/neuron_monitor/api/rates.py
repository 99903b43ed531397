"""What two readings say together: utilisation, FLOP/s, bandwidth, latency percentiles.

On the simulated device the time between two readings is the simulated time that passed, because that is the
time in which its counters count; on a real driver it is wall time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from neuron_monitor.api import layout
from neuron_monitor.api.readings import CoreReading, ProcessReading

PERCENTILES = (0, 1, 25, 50, 75, 99, 100)
_BUSY = layout.COLUMN_OF["nc_time_in_use"]
_FLOPS = layout.COLUMN_OF["flop_count"]
_THROTTLED = layout.COLUMN_OF["throttled_ns"]


@dataclass(frozen=True, slots=True)
class CoreRates:
    """How busy one core, physical or logical, was between two readings.

    Attributes:
        utilization: Share of the time in which it executed something, 0 to 1.
        flops_per_second: Of the Tensor engine.
        engines: Share of the time in which each engine executed, 0 to 1; {} where the driver does not tell.
        bytes_per_second: By kind of traffic; {} where the driver does not tell.
        throttled: Share of the time in which the Tensor engine ran slowed down; None where not told.
    """

    utilization: float = 0.0
    flops_per_second: float = 0.0
    engines: Mapping[str, float] = field(default_factory=dict)
    bytes_per_second: Mapping[str, float] = field(default_factory=dict)
    throttled: float | None = None


IDLE = CoreRates()


def core_rates(before: CoreReading, after: CoreReading, elapsed_ns: int) -> CoreRates:
    """Rates of one physical core over a time; all 0 where no time passed or the counters were reset."""
    if elapsed_ns <= 0 or after.counts[_BUSY] < before.counts[_BUSY]:
        return IDLE
    old, new = before.counts, after.counts
    seconds = elapsed_ns / 1e9
    utilization = _share((new[_BUSY] - old[_BUSY]) * 1000, elapsed_ns)
    flops_per_second = max(0, new[_FLOPS] - old[_FLOPS]) / seconds
    if not after.is_clocked:
        return CoreRates(utilization, flops_per_second)
    engines, traffic = layout.ENGINE_SLICE, layout.TRAFFIC_SLICE
    return CoreRates(
        utilization,
        flops_per_second,
        engines={
            name: _share(is_now - was, elapsed_ns)
            for name, was, is_now in zip(layout.ENGINES, old[engines], new[engines])
        },
        bytes_per_second={
            name: max(0, is_now - was) / seconds
            for name, was, is_now in zip(layout.TRAFFIC_NODES, old[traffic], new[traffic])
        },
        throttled=_share(new[_THROTTLED] - old[_THROTTLED], elapsed_ns),
    )


def physical_rates(
    before: Sequence[CoreReading], after: Sequence[CoreReading], wall_ns: int
) -> dict[int, CoreRates]:
    """Rates by physical core id of two readings of a tree; cores that were not there are idle."""
    old = {core.id: core for core in before}
    found = {}
    for core in after:
        was = old.get(core.id)
        found[core.id] = IDLE if was is None else core_rates(was, core, _passed(was, core, wall_ns))
    return found


def process_rates(before: ProcessReading, after: ProcessReading, wall_ns: int) -> dict[int, CoreRates]:
    """Rates by physical core id of what one process did between two readings."""
    passed_ns = wall_ns if after.elapsed_ns is None else after.elapsed_ns - (before.elapsed_ns or 0)
    return {
        core_id: core_rates(_counters(before, core_id, core.counters), core.counters, passed_ns)
        for core_id, core in after.cores.items()
    }


def logical_rates(rates: Mapping[int, CoreRates], size: int) -> dict[int, CoreRates]:
    """Rates of logical cores, each of `size` physical ones: shares are means, amounts are sums."""
    if size == 1:
        return dict(rates)
    groups: dict[int, list[CoreRates]] = {}
    for core_id, each in rates.items():
        groups.setdefault(core_id // size, []).append(each)
    return {logical: _together(group) for logical, group in groups.items()}


def histogram_between(before: Mapping[int, int], after: Mapping[int, int]) -> dict[int, int]:
    """Counts by upper bound of what was added between two readings of a histogram."""
    return {
        bound: count - before.get(bound, 0) for bound, count in after.items() if count > before.get(bound, 0)
    }


def merge_histograms(histograms: Sequence[Mapping[int, int]]) -> dict[int, int]:
    """Several histograms as one."""
    merged: dict[int, int] = {}
    for histogram in histograms:
        for bound, count in histogram.items():
            merged[bound] = merged.get(bound, 0) + count
    return merged


def percentiles(histogram: Mapping[int, int]) -> dict[int, float] | None:
    """The upper bounds, in seconds, at which each of `PERCENTILES` is reached; None without any count.

    Bounds are 2^(1/8) apart, so a percentile is at most 9 % too high (docs/simulated-driver.md).
    """
    total = sum(histogram.values())
    if total == 0:
        return None
    found: dict[int, float] = {}
    reached = 0
    wanted = list(PERCENTILES)
    for bound in sorted(histogram):
        reached += histogram[bound]
        while wanted and reached >= max(1.0, wanted[0] / 100 * total):
            found[wanted.pop(0)] = bound / 1e9
    return found


def latency_between(before: ProcessReading, after: ProcessReading, kind: str) -> dict[int, int]:
    """Executions of a process between two readings by their latency; `kind` is "device" or "total"."""
    return merge_histograms(
        [
            histogram_between(_latency(before, core_id, kind), core.latency.get(kind, {}))
            for core_id, core in after.cores.items()
        ]
    )


def _latency(process: ProcessReading, core_id: int, kind: str) -> Mapping[int, int]:
    core = process.cores.get(core_id)
    return {} if core is None else core.latency.get(kind, {})


def _counters(process: ProcessReading, core_id: int, like: CoreReading) -> CoreReading:
    """A core's counters in an earlier reading: all 0 where a simulated process had not used it yet."""
    core = process.cores.get(core_id)
    if core is not None:
        return core.counters
    return CoreReading(core_id, like.device, like.core, is_clocked=True) if like.is_clocked else like


def _passed(before: CoreReading, after: CoreReading, wall_ns: int) -> int:
    if after.elapsed_ns is None:
        return wall_ns
    return after.elapsed_ns - (before.elapsed_ns or 0)


def _together(group: Sequence[CoreRates]) -> CoreRates:
    count = len(group)
    throttled = [each.throttled for each in group if each.throttled is not None]
    return CoreRates(
        utilization=sum(each.utilization for each in group) / count,
        flops_per_second=sum(each.flops_per_second for each in group),
        engines={
            name: sum(each.engines.get(name, 0.0) for each in group) / count for name in group[0].engines
        },
        bytes_per_second={
            name: sum(each.bytes_per_second.get(name, 0.0) for each in group)
            for name in group[0].bytes_per_second
        },
        throttled=sum(throttled) / count if throttled else None,
    )


def _share(part_ns: int, whole_ns: int) -> float:
    """A share of time, kept within 0 and 1: two nodes are never read at quite the same moment."""
    return min(1.0, max(0.0, part_ns / whole_ns))
