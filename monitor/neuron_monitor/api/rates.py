"""What two readings say together: utilisation, FLOP/s, bandwidth, latency percentiles.

On the simulated device the time between two readings is the simulated time that passed, because that is the
time in which its counters count; on a real driver it is wall time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import sub
from types import MappingProxyType
from typing import NamedTuple

from neuron_monitor.api import layout
from neuron_monitor.api.latency import EMPTY, added_between, percentiles
from neuron_monitor.api.readings import CoreReading, ProcessReading, TreeReading

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
    if elapsed_ns <= 0 or after.counts[_BUSY] < before.counts[_BUSY]:
        return IDLE_CLOCKED if after.is_clocked else IDLE
    added = list(map(sub, after.counts, before.counts))
    per_second = 1e9 / elapsed_ns
    utilization = _share(added[_BUSY] * 1000, elapsed_ns)
    flops_per_second = added[_FLOPS] * per_second if added[_FLOPS] > 0 else 0.0
    if not after.is_clocked:
        return CoreRates(utilization, flops_per_second)
    shares = [_share(busy_ns, elapsed_ns) for busy_ns in added[layout.ENGINE_SLICE]]
    rates = [moved * per_second if moved > 0 else 0.0 for moved in added[layout.TRAFFIC_SLICE]]
    return CoreRates(
        utilization,
        flops_per_second,
        dict(zip(layout.ENGINES, shares)),
        dict(zip(layout.TRAFFIC_NODES, rates)),
        _share(added[_THROTTLED], elapsed_ns),
    )


def _share(part_ns: int, whole_ns: int) -> float:
    """Kept within 0 and 1: two nodes are never read at quite the same moment."""
    if part_ns <= 0:
        return 0.0
    return 1.0 if part_ns >= whole_ns else part_ns / whole_ns


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
        core_id: core_rates(_counters(before, core_id, core), core, passed_ns)
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


def latency_percentiles(before: ProcessReading, after: ProcessReading, kind: str) -> dict[int, float] | None:
    """Latency of the executions of a process between two readings, in seconds by percentile.

    Args:
        kind: "device" or "total".
    """
    new = after.latency.get(kind)
    return None if new is None else percentiles(added_between(before.latency.get(kind, EMPTY), new))


def _counters(process: ProcessReading, core_id: int, like: CoreReading) -> CoreReading:
    """A core's counters in an earlier reading: all 0 where a simulated process had not used it yet."""
    core = process.cores.get(core_id)
    if core is not None:
        return core
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
