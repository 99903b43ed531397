"""What two readings say together: utilisation, FLOP/s, bandwidth, latency percentiles.

On the simulated device the time between two readings is the simulated time that passed, because that is the
time in which its counters count; on a real driver it is wall time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from neuron_monitor.api import kernels, layout, python_kernels
from neuron_monitor.api.latency import EMPTY, PERCENTILES, seconds_between
from neuron_monitor.api.readings import CoreReading, ProcessReading
from neuron_monitor.api.records import TreeReading

_BUSY = layout.COLUMN_OF["nc_time_in_use"]
_ELAPSED = layout.COLUMN_OF["elapsed_ns"]
_COLUMNS = (
    _BUSY,
    layout.COLUMN_OF["flop_count"],
    layout.COLUMN_OF["throttled_ns"],
    layout.ENGINE_SLICE.start,
    layout.ENGINE_SLICE.stop,
    layout.TRAFFIC_SLICE.start,
    layout.TRAFFIC_SLICE.stop,
)
# As `kernels.window_numbers` looks at a core.
WINDOW_COLUMNS = (
    *_COLUMNS,
    layout.STATUS_SLICE.start,
    layout.STATUS_SLICE.stop,
)


class CoreRates(NamedTuple):
    """How busy one core, physical or logical, was between two readings.

    Attributes:
        utilization: Share of the time in which it executed something, 0 to 1.
        flops_per_second: Of the Tensor engine.
        engine_shares: In the order of `layout.ENGINES`; () where the driver does not tell.
        traffic_rates: Bytes a second by `layout.TRAFFIC_NODES`; () where the driver does not tell.
        throttled: Share of the time in which the Tensor engine ran slowed down; None where not told.
    """

    utilization: float = 0.0
    flops_per_second: float = 0.0
    engine_shares: tuple[float, ...] = ()
    traffic_rates: tuple[float, ...] = ()
    throttled: float | None = None

    @property
    def engines(self) -> Mapping[str, float]:
        """Share of the time in which each engine executed, 0 to 1; {} where the driver does not tell."""
        return dict(zip(layout.ENGINES, self.engine_shares))

    @property
    def bytes_per_second(self) -> Mapping[str, float]:
        """By kind of traffic; {} where the driver does not tell."""
        return dict(zip(layout.TRAFFIC_NODES, self.traffic_rates))


IDLE = CoreRates()
IDLE_CLOCKED = CoreRates(
    engine_shares=(0.0,) * len(layout.ENGINES),
    traffic_rates=(0.0,) * len(layout.TRAFFIC_NODES),
    throttled=0.0,
)


def core_rates(before: CoreReading, after: CoreReading, elapsed_ns: int) -> CoreRates:
    """Rates of one physical core over a time; all 0 where no time passed or the counters were reset."""
    if elapsed_ns <= 0 or after.counts[_BUSY] < before.counts[_BUSY]:
        return IDLE_CLOCKED if after.is_clocked else IDLE
    try:
        rates = kernels.core_rates(before.counts, after.counts, elapsed_ns, _COLUMNS)
    except OverflowError:
        rates = python_kernels.core_rates(before.counts, after.counts, elapsed_ns, _COLUMNS)
    return CoreRates._make(rates) if after.is_clocked else CoreRates(*rates[:2])


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
    old = before.cores.get
    return {
        core_id: core_rates(old(core_id) or _not_used_yet(core), core, passed_ns)
        for core_id, core in after.cores.items()
    }


def logical_rates(rates: Mapping[int, CoreRates], size: int) -> Mapping[int, CoreRates]:
    """Rates of logical cores, each of `size` physical ones: shares are means, amounts are sums."""
    if size == 1:
        return rates
    groups: dict[int, list[CoreRates]] = {}
    for core_id, each in rates.items():
        groups.setdefault(core_id // size, []).append(each)
    return {logical: _together(group) for logical, group in groups.items()}


def latency_percentiles(before: ProcessReading, after: ProcessReading, kind: str) -> dict[int, float] | None:
    """Latency of the executions of a process between two readings, in seconds by percentile.

    Args:
        kind: "device" or "total".
    """
    seconds = latency_seconds(before, after, kind)
    return dict(zip(PERCENTILES, seconds)) if seconds else None


def latency_seconds(before: ProcessReading, after: ProcessReading, kind: str) -> tuple[float, ...]:
    """The percentiles alone, in the order of `PERCENTILES`; () where nothing was executed or told."""
    new = after.latency.get(kind)
    return () if new is None else seconds_between(before.latency.get(kind, EMPTY), new)


def _not_used_yet(core: CoreReading) -> CoreReading:
    """A core's counters before a process used it: all 0 where they are the process's own."""
    return CoreReading(core.id, core.device, core.core, is_clocked=True) if core.is_clocked else core


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
        engine_shares=tuple([sum(shares) / count for shares in zip(*(each.engine_shares for each in group))]),
        traffic_rates=tuple(map(sum, zip(*(each.traffic_rates for each in group)))),
        throttled=sum(throttled) / count if throttled else None,
    )


class UtilizationWatch:
    """Utilisation of the physical cores over readings; a core whose clock stands still keeps its last."""

    def __init__(self) -> None:
        self._known: dict[int, float] = {}
        self._last: tuple[TreeReading | None, dict[int, CoreReading]] = (None, {})

    def update(self, before: TreeReading, after: TreeReading) -> dict[int, float]:
        """Shares of time, 0 to 1, by physical core id."""
        old = self._last[1] if before is self._last[0] else before.cores_by_id()
        cores = after.cores_by_id()
        wall_ns = after.taken_ns - before.taken_ns
        self._known = kernels.utilizations(old, cores, wall_ns, self._known, _BUSY, _ELAPSED)
        self._last = after, cores
        return self._known
