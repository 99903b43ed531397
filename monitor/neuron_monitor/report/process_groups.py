"""The groups that are reported of one process: counters, executions, processor time, activity.

Each is told in two parts: its numbers, and its shape, of which the structure is made, with a `SLOT` for each
of the numbers in the same order. The structure is asked for only when the shape is another than before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from neuron_monitor.api import kernels
from neuron_monitor.api.host import ProcessTime
from neuron_monitor.api.latency import PERCENTILES
from neuron_monitor.api.layout import ENGINES, TRAFFIC_NODES
from neuron_monitor.api.rates import WINDOW_COLUMNS, latency_seconds
from neuron_monitor.api.readings import ProcessReading
from neuron_monitor.report.executions import ERROR_STATUSES, SUMMARY_STATUSES, execution_numbers
from neuron_monitor.report.sheet import SLOT, Number
from neuron_monitor.report.spelling import Keys


class ProcessWindow(NamedTuple):
    """One process at the start and the end of a group's period.

    Attributes:
        cores: Physical cores, in rising order.
        counters: Of each logical core: busy percent, FLOP a second as often as the report has it, and with
            two physical cores or more busy percent of each.
        activity: Of each logical core: engines, traffic and throttling, or None where they are not told.
        completed: Executions that ended well, below 0 where others ended too.
    """

    before: ProcessReading
    after: ProcessReading
    cores: tuple[int, ...]
    counters: Sequence[Number]
    activity: Sequence[Number]
    completed: int


_RATE_NAMES = tuple(f"{name}_per_second" for name in TRAFFIC_NODES)
_LATENCY = dict.fromkeys((f"p{percentile}" for percentile in PERCENTILES), SLOT)
_NO_EXECUTIONS: list[Number] = [0] * (len(ERROR_STATUSES) + len(SUMMARY_STATUSES))


def make_window(
    before: ProcessReading, after: ProcessReading, wall_ns: int, flops_copies: int
) -> ProcessWindow:
    """The window between two readings of a process."""
    elapsed_ns = wall_ns if after.elapsed_ns is None else after.elapsed_ns - (before.elapsed_ns or 0)
    numbers = kernels.window_numbers(
        before.cores, after.cores, elapsed_ns, WINDOW_COLUMNS, after.logical_core_size, flops_copies
    )
    return ProcessWindow(before, after, tuple(after.cores), *numbers)


def counters_structure(
    cores: Sequence[int], size: int, keys: Keys, core_architecture: str, *, is_timed: bool
) -> dict[str, Any]:
    """The group `neuroncore_counters`; no core where times are not kept, for readers take 0 for idle."""
    if not is_timed:
        return {"neuroncores_in_use": {}}
    entry = {"neuroncore_utilization": SLOT, **dict.fromkeys(keys.flops, SLOT)}
    if size == 1:
        return {"neuroncores_in_use": {str(core): entry for core in cores}}
    name = joined_version(core_architecture)
    return {
        "neuroncores_in_use": {
            str(core): {**entry, name: _physical_structure(parts, core_architecture)}
            for core, parts in groupby(cores, key=lambda core: core // size)
        }
    }


def joined_version(core_architecture: str) -> str:
    """How a logical core of two physical ones is called, e.g. "v3d" for "NCv3"."""
    return f"{core_architecture.removeprefix('NC') or 'v'}d"


def latencies(window: ProcessWindow) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Percentiles of latency in seconds, as the runtime sees it and on the device; () where not known."""
    before, after = window.before, window.after
    if before is after or not after.latency:
        return (), ()
    return latency_seconds(before, after, "total"), latency_seconds(before, after, "device")


def execution_counts(window: ProcessWindow) -> Sequence[Number]:
    """Executions by kind of error, then by how they ended."""
    if window.before is window.after:
        return _NO_EXECUTIONS
    return execution_numbers(window.before, window.after, window.completed)


def executions_structure(*, has_total: bool, has_device: bool) -> dict[str, Any]:
    """The group `execution_stats`."""
    return {
        "error_summary": dict.fromkeys(ERROR_STATUSES, SLOT),
        "execution_summary": dict.fromkeys(SUMMARY_STATUSES, SLOT),
        "latency_stats": {
            "total_latency": _LATENCY if has_total else None,
            "device_latency": _LATENCY if has_device else None,
        },
    }


def runtime_vcpu_usage(
    before: ProcessTime | None, after: ProcessTime | None, seconds: float, processors: float
) -> tuple[float, float]:
    """The numbers of `neuron_runtime_vcpu_usage`, user and system: percent of the host's processors."""
    if before is None or after is None or seconds <= 0 or before == after:
        return 0.0, 0.0
    available_s = seconds * max(processors, 1e-9)
    user_s, system_s = after.user_s - before.user_s, after.system_s - before.system_s
    return percent_of(user_s, available_s), percent_of(system_s, available_s)


def vcpu_structure() -> dict[str, Any]:
    """The structure of `neuron_runtime_vcpu_usage`."""
    return {"vcpu_usage": {"user": SLOT, "system": SLOT}}


def activity_structure(cores: Sequence[int], size: int, *, is_timed: bool, is_told: bool) -> dict[str, Any]:
    """Our group `neuroncore_activity`: engines, bandwidth and throttling of each logical core."""
    each = {
        "engine_utilization": dict.fromkeys(ENGINES, SLOT) if is_told else {},
        **(dict.fromkeys(_RATE_NAMES, SLOT) if is_told else {}),
        "throttled": SLOT,
    }
    logical = dict.fromkeys(core // size for core in cores)
    return {"is_timed": is_timed, "neuroncores": {str(core): each for core in logical}}


def _physical_structure(cores: Iterable[int], architecture: str) -> dict[str, Any]:
    name = architecture.lower().replace("ncv", "nc_v") or "nc"
    return {f"{name}.{core}": {"neuroncore_utilization": SLOT} for core in cores}


def percent_of(part: float, whole: float) -> float:
    """A part in percent, 0 to 100, with two decimals."""
    return round(min(100.0, max(0.0, 100 * part / whole)), 2)
