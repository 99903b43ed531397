"""The groups that are reported of one process: counters, executions, processor time, activity.

Each is told in two parts: its numbers, and its structure with a `SLOT` for each of them in the same order.
The structure is asked for only when the group's shape is another than before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from neuron_monitor.api.host import ProcessTime
from neuron_monitor.api.latency import PERCENTILES
from neuron_monitor.api.layout import ENGINES, TRAFFIC_NODES
from neuron_monitor.api.rates import (
    CoreRates,
    latency_seconds,
    logical_rates,
    process_rates,
)
from neuron_monitor.api.readings import ProcessReading
from neuron_monitor.report.executions import ERROR_STATUSES, SUMMARY_STATUSES, execution_numbers
from neuron_monitor.report.sheet import SLOT, Number
from neuron_monitor.report.spelling import Keys


class ProcessWindow(NamedTuple):
    """One process at the start and the end of a group's period.

    Attributes:
        physical: Rates by physical core.
        logical: Rates by logical core, in rising order.
    """

    before: ProcessReading
    after: ProcessReading
    physical: Mapping[int, CoreRates]
    logical: Mapping[int, CoreRates]


class Part(NamedTuple):
    """One group of one process, without its period and error.

    Attributes:
        shape: As long as this is equal, so is the structure.
        structure: Makes it.
        numbers: In the order of the structure's slots.
        texts: JSON text for the slots behind those of the numbers.
    """

    shape: Hashable
    structure: Callable[[], dict[str, Any]]
    numbers: Sequence[Number]
    texts: tuple[bytes, ...] = ()


_RATE_NAMES = tuple(f"{name}_per_second" for name in TRAFFIC_NODES)
_LATENCY = dict.fromkeys((f"p{percentile}" for percentile in PERCENTILES), SLOT)
_NO_EXECUTIONS: list[Number] = [0] * (len(ERROR_STATUSES) + len(SUMMARY_STATUSES))


def make_window(before: ProcessReading, after: ProcessReading, wall_ns: int) -> ProcessWindow:
    """The window between two readings of a process."""
    physical = process_rates(before, after, wall_ns)
    logical = logical_rates(physical, after.logical_core_size)
    cores = list(logical)
    in_order = cores == sorted(cores)
    return ProcessWindow(before, after, physical, logical if in_order else dict(sorted(logical.items())))


def neuroncore_counters(window: ProcessWindow, keys: Keys, core_architecture: str) -> Part:
    """The group `neuroncore_counters`; no core where times are not kept, for readers take 0 for idle."""
    if not window.after.is_timed:
        return Part("not timed", lambda: {"neuroncores_in_use": {}}, [])
    size, flops = window.after.logical_core_size, len(keys.flops)
    cores = tuple(window.logical)
    physical = tuple(_physical(window, core, size) for core in cores) if size > 1 else ()
    numbers: list[Number] = []
    for place, rates in enumerate(window.logical.values()):
        numbers.append(100 * rates.utilization)
        numbers += [int(rates.flops_per_second)] * flops
        if physical:
            numbers += [100 * window.physical[core].utilization for core in physical[place]]

    def structure() -> dict[str, Any]:
        entry = {"neuroncore_utilization": SLOT, **dict.fromkeys(keys.flops, SLOT)}
        name = joined_version(core_architecture)
        if not physical:
            return {"neuroncores_in_use": {str(core): entry for core in cores}}
        parts = [_physical_structure(each, core_architecture) for each in physical]
        return {"neuroncores_in_use": {str(core): {**entry, name: part} for core, part in zip(cores, parts)}}

    return Part((cores, physical, keys, core_architecture), structure, numbers)


def joined_version(core_architecture: str) -> str:
    """How a logical core of two physical ones is called, e.g. "v3d" for "NCv3"."""
    return f"{core_architecture.removeprefix('NC') or 'v'}d"


def execution_stats(window: ProcessWindow) -> Part:
    """The group `execution_stats`."""
    before, after = window.before, window.after
    total: tuple[float, ...] = ()
    device: tuple[float, ...] = ()
    numbers = _NO_EXECUTIONS
    if before is not after:
        total, device = latency_seconds(before, after, "total"), latency_seconds(before, after, "device")
        numbers = [*execution_numbers(before, after), *total, *device]
    has_total, has_device = bool(total), bool(device)

    def structure() -> dict[str, Any]:
        return {
            "error_summary": dict.fromkeys(ERROR_STATUSES, SLOT),
            "execution_summary": dict.fromkeys(SUMMARY_STATUSES, SLOT),
            "latency_stats": {
                "total_latency": _LATENCY if has_total else None,
                "device_latency": _LATENCY if has_device else None,
            },
        }

    return Part((has_total, has_device), structure, numbers)


def runtime_vcpu_usage(
    before: ProcessTime | None, after: ProcessTime | None, seconds: float, processors: float
) -> tuple[float, float]:
    """The numbers of `neuron_runtime_vcpu_usage`, user and system: percent of the host's processors."""
    if before is None or after is None or seconds <= 0 or before == after:
        return 0.0, 0.0
    available_s = seconds * max(processors, 1e-9)
    user_s, system_s = after.user_s - before.user_s, after.system_s - before.system_s
    return _percent(user_s, available_s), _percent(system_s, available_s)


def vcpu_structure() -> dict[str, Any]:
    """The structure of `neuron_runtime_vcpu_usage`."""
    return {"vcpu_usage": {"user": SLOT, "system": SLOT}}


def neuroncore_activity(window: ProcessWindow) -> Part:
    """Our group `neuroncore_activity`: engines, bandwidth and throttling of each logical core."""
    cores, is_timed = tuple(window.logical), window.after.is_timed
    is_told = any(rates.engine_shares for rates in window.logical.values())
    numbers: list[Number] = []
    for rates in window.logical.values():
        numbers += rates.activity or _activity(rates)

    def structure() -> dict[str, Any]:
        each = {
            "engine_utilization": dict.fromkeys(ENGINES, SLOT) if is_told else {},
            **(dict.fromkeys(_RATE_NAMES, SLOT) if is_told else {}),
            "throttled": SLOT,
        }
        return {"is_timed": is_timed, "neuroncores": {str(core): each for core in cores}}

    return Part((cores, is_timed, is_told), structure, numbers)


def _activity(rates: CoreRates) -> list[Number]:
    """Engines in percent, bytes a second, throttled in percent."""
    return [
        *(100 * share for share in rates.engine_shares),
        *map(int, rates.traffic_rates),
        None if rates.throttled is None else 100 * rates.throttled,
    ]


def _physical(window: ProcessWindow, core: int, size: int) -> tuple[int, ...]:
    """The physical cores of a logical one that the process uses."""
    return tuple(
        physical for physical in range(core * size, (core + 1) * size) if physical in window.physical
    )


def _physical_structure(cores: tuple[int, ...], architecture: str) -> dict[str, Any]:
    name = architecture.lower().replace("ncv", "nc_v") or "nc"
    return {f"{name}.{core}": {"neuroncore_utilization": SLOT} for core in cores}


def _percent(part: float, whole: float) -> float:
    return round(min(100.0, max(0.0, 100 * part / whole)), 2)
