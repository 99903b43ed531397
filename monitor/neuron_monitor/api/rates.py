"""What two readings say together: utilisation, FLOP/s, bandwidth, latency percentiles.

On the simulated device the time between two readings is the simulated time that passed, because that is the
time in which its counters count; on a real driver it is wall time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from operator import lt, sub
from types import MappingProxyType
from typing import NamedTuple

from neuron_monitor.api import layout
from neuron_monitor.api.readings import CoreReading, ProcessReading, TreeReading

PERCENTILES = (0, 1, 25, 50, 75, 99, 100)
_BUSY = layout.COLUMN_OF["nc_time_in_use"]
_FLOPS = layout.COLUMN_OF["flop_count"]
_THROTTLED = layout.COLUMN_OF["throttled_ns"]


class CoreRates(NamedTuple):
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
    engines: Mapping[str, float] = MappingProxyType({})
    bytes_per_second: Mapping[str, float] = MappingProxyType({})
    throttled: float | None = None


IDLE = CoreRates()
IDLE_CLOCKED = CoreRates(
    engines=dict.fromkeys(layout.ENGINES, 0.0),
    bytes_per_second=dict.fromkeys(layout.TRAFFIC_NODES, 0.0),
    throttled=0.0,
)


def core_rates(before: CoreReading, after: CoreReading, elapsed_ns: int) -> CoreRates:
    """Rates of one physical core over a time; all 0 where no time passed or the counters were reset."""
    old, new = before.counts, after.counts
    if elapsed_ns <= 0 or new[_BUSY] < old[_BUSY]:
        return IDLE_CLOCKED if after.is_clocked else IDLE
    per_ns = 1 / elapsed_ns
    per_second = 1e9 * per_ns
    utilization = min(1.0, (new[_BUSY] - old[_BUSY]) * 1000 * per_ns)
    flops_per_second = max(0, new[_FLOPS] - old[_FLOPS]) * per_second
    if not after.is_clocked:
        return CoreRates(utilization, flops_per_second)
    engines, traffic = layout.ENGINE_SLICE, layout.TRAFFIC_SLICE
    # Kept within 0 and 1: two nodes are never read at quite the same moment.
    shares = [min(1.0, max(0.0, (is_now - was) * per_ns)) for was, is_now in zip(old[engines], new[engines])]
    rates = [max(0.0, (is_now - was) * per_second) for was, is_now in zip(old[traffic], new[traffic])]
    return CoreRates(
        utilization,
        flops_per_second,
        dict(zip(layout.ENGINES, shares)),
        dict(zip(layout.TRAFFIC_NODES, rates)),
        min(1.0, max(0.0, (new[_THROTTLED] - old[_THROTTLED]) * per_ns)),
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


def latency_between(before: ProcessReading, after: ProcessReading, kind: str) -> dict[str, int]:
    """Executions of a process between two readings, by the upper bound of their latency in ns.

    Args:
        kind: "device" or "total".
    """
    added: dict[str, int] = {}
    for core_id, core in after.cores.items():
        earlier = before.cores.get(core_id)
        old = earlier.latency.get(kind, {}) if earlier is not None else {}
        for bound, count in core.latency.get(kind, {}).items():
            more = count - old.get(bound, 0)
            if more > 0:
                added[bound] = added.get(bound, 0) + more
    return added


def percentiles(histogram: Mapping[str, int]) -> dict[int, float] | None:
    """The upper bounds, in seconds, at which each of `PERCENTILES` is reached; None without any count.

    Bounds are 2^(1/8) apart, so a percentile is at most 9 % too high (docs/simulated-driver.md).
    """
    bounds = sorted(histogram, key=int)
    return _percentiles(list(map(int, bounds)), [histogram[bound] for bound in bounds])


def latency_percentiles(before: ProcessReading, after: ProcessReading, kind: str) -> dict[int, float] | None:
    """`percentiles` of `latency_between`.

    Most often all cores have executions at the same bounds, in rising order, as they had before: then Python
    code touches no single count.
    """
    new = [core.latency.get(kind, {}) for core in after.cores.values()]
    old = [core.latency.get(kind, {}) for core in before.cores.values()]
    if new and len(new) == len(old):
        texts = list(new[0])
        bounds = list(map(int, texts))
        if all(list(each) == texts for each in (*new[1:], *old)) and all(map(lt, bounds, bounds[1:])):
            added = list(map(sub, _sums(new), _sums(old)))
            if min(added, default=0) >= 0:
                return _percentiles(bounds, added)
    return percentiles(latency_between(before, after, kind))


def _sums(histograms: Sequence[Mapping[str, int]]) -> Sequence[int]:
    values = [list(histogram.values()) for histogram in histograms]
    return values[0] if len(values) == 1 else list(map(sum, zip(*values)))


def _percentiles(bounds: Sequence[int], counts: Sequence[int]) -> dict[int, float] | None:
    """Percentiles of counts at rising bounds in ns."""
    reached = list(accumulate(counts))
    if not reached or reached[-1] == 0:
        return None
    total, last = reached[-1], len(bounds) - 1
    # At least one execution must be reached, also by percentile 0.
    return {
        percentile: bounds[min(last, bisect_left(reached, max(1, percentile / 100 * total)))] / 1e9
        for percentile in PERCENTILES
    }


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


class UtilizationWatch:
    """Utilisation of the physical cores over readings; a core whose clock stands still keeps its last."""

    def __init__(self) -> None:
        self._known: dict[int, float] = {}

    def update(self, before: TreeReading, after: TreeReading) -> dict[int, float]:
        """Shares of time, 0 to 1, by physical core id."""
        old = {core.id: core for device in before.devices for core in device.cores}
        wall_ns = after.taken_ns - before.taken_ns
        found: dict[int, float] = {}
        for core in (core for device in after.devices for core in device.cores):
            was = old.get(core.id, core)
            if was is core or was.counts == core.counts:
                found[core.id] = self._known.get(core.id, 0.0) if core.is_clocked else 0.0
            else:
                busy_ns = 1000 * (core.counts[_BUSY] - was.counts[_BUSY])
                passed_ns = _passed(was, core, wall_ns)
                found[core.id] = min(1.0, max(0.0, busy_ns / passed_ns)) if passed_ns > 0 else 0.0
        self._known = found
        return found
