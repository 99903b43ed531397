"""The groups that are reported of one process: counters, executions, memory, processor time, activity."""

from __future__ import annotations

from typing import Any, NamedTuple

from neuron_monitor.api.host import ProcessTime
from neuron_monitor.api.latency import PERCENTILES
from neuron_monitor.api.layout import TRAFFIC_NODES
from neuron_monitor.api.rates import (
    CoreRates,
    latency_percentiles,
    logical_rates,
    process_rates,
)
from neuron_monitor.api.readings import ProcessReading
from neuron_monitor.report.executions import (
    ERROR_STATUSES,
    SUMMARY_STATUSES,
    statuses_between,
    summed,
)
from neuron_monitor.report.spelling import Keys


class ProcessWindow(NamedTuple):
    """One process at the start and the end of a group's period.

    Attributes:
        physical: Rates by physical core.
        logical: Rates by logical core.
    """

    before: ProcessReading
    after: ProcessReading
    physical: dict[int, CoreRates]
    logical: dict[int, CoreRates]


_PERCENTILE_NAMES = tuple(f"p{percentile}" for percentile in PERCENTILES)
_RATE_NAMES = tuple(f"{name}_per_second" for name in TRAFFIC_NODES)
NO_EXECUTIONS: dict[str, Any] = {
    "error_summary": dict.fromkeys(ERROR_STATUSES, 0),
    "execution_summary": dict.fromkeys(SUMMARY_STATUSES, 0),
    "latency_stats": {"total_latency": None, "device_latency": None},
}


def make_window(before: ProcessReading, after: ProcessReading, wall_ns: int) -> ProcessWindow:
    """The window between two readings of a process."""
    physical = process_rates(before, after, wall_ns)
    return ProcessWindow(before, after, physical, logical_rates(physical, after.logical_core_size))


def neuroncore_counters(window: ProcessWindow, keys: Keys, core_architecture: str) -> dict[str, Any]:
    """The group `neuroncore_counters`, without its period and error."""
    size = window.after.logical_core_size
    in_use: dict[str, dict[str, Any]] = {}
    for core, rates in sorted(window.logical.items()):
        entry: dict[str, Any] = {"neuroncore_utilization": 100 * rates.utilization}
        entry.update(dict.fromkeys(keys.flops, int(rates.flops_per_second)))
        if size > 1:
            entry[joined_version(core_architecture)] = _physical(window, core, size, core_architecture)
        in_use[str(core)] = entry
    return {"neuroncores_in_use": in_use}


def joined_version(core_architecture: str) -> str:
    """How a logical core of two physical ones is called, e.g. "v3d" for "NCv3"."""
    return f"{core_architecture.removeprefix('NC') or 'v'}d"


def execution_stats(window: ProcessWindow) -> dict[str, Any]:
    """The group `execution_stats`, without its period and error."""
    statuses = statuses_between(window.before, window.after)
    return {
        "error_summary": summed(statuses, ERROR_STATUSES),
        "execution_summary": summed(statuses, SUMMARY_STATUSES),
        "latency_stats": {
            "total_latency": _latency(window, "total"),
            "device_latency": _latency(window, "device"),
        },
    }


def runtime_vcpu_usage(
    before: ProcessTime | None, after: ProcessTime | None, seconds: float, processors: float
) -> dict[str, Any]:
    """The group `neuron_runtime_vcpu_usage`, in percent of all of the host's processors."""
    usage = {"user": 0.0, "system": 0.0}
    if before is not None and after is not None and seconds > 0:
        available_s = seconds * max(processors, 1e-9)
        usage["user"] = _percent(after.user_s - before.user_s, available_s)
        usage["system"] = _percent(after.system_s - before.system_s, available_s)
    return {"vcpu_usage": usage}


def neuroncore_activity(window: ProcessWindow) -> dict[str, Any]:
    """Our group `neuroncore_activity`: engines, bandwidth and throttling of each logical core."""
    return {
        "is_timed": window.after.is_timed,
        "neuroncores": {str(core): _activity(rates) for core, rates in sorted(window.logical.items())},
    }


def _activity(rates: CoreRates) -> dict[str, Any]:
    return {
        "engine_utilization": {name: 100 * share for name, share in rates.engines.items()},
        **dict(zip(_RATE_NAMES, map(int, rates.bytes_per_second.values()))),
        "throttled": None if rates.throttled is None else 100 * rates.throttled,
    }


def _physical(window: ProcessWindow, core: int, size: int, architecture: str) -> dict[str, Any]:
    name = architecture.lower().replace("ncv", "nc_v") or "nc"
    return {
        f"{name}.{physical}": {"neuroncore_utilization": 100 * window.physical[physical].utilization}
        for physical in range(core * size, (core + 1) * size)
        if physical in window.physical
    }


def _latency(window: ProcessWindow, kind: str) -> dict[str, float] | None:
    found = latency_percentiles(window.before, window.after, kind)
    return None if found is None else dict(zip(_PERCENTILE_NAMES, found.values()))


def _percent(part: float, whole: float) -> float:
    return round(min(100.0, max(0.0, 100 * part / whole)), 2)
