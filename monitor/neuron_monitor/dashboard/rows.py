"""One view as one row of numbers: what the page's charts, its history and its CSV hold."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from neuron_monitor.api.layout import ENGINES, TRAFFIC_NODES
from neuron_monitor.api.rates import CoreRates
from neuron_monitor.api.readings import ProcessReading
from neuron_monitor.api.view import ProcessView, View
from neuron_monitor.prometheus.series import system_usage
from neuron_monitor.report.executions import ERROR_STATUSES, SUMMARY_STATUSES, summed, total_statuses
from neuron_monitor.report.memory import DEVICE_CATEGORIES, device_categories

LATENCIES = (("total", 50), ("total", 99), ("device", 50), ("device", 99))


def column_names(core_ids: Sequence[int]) -> list[str]:
    """Names of a row's columns, for a machine with these physical cores.

    Shares are 0 to 1; rates are per second; a latency without executions is NaN.
    """
    return [
        "utilization_mean",
        "utilization_maximum",
        "flops_per_second",
        "throttled_maximum",
        *(f"engine_{name}" for name in ENGINES),
        *(f"{name}_per_second" for name in TRAFFIC_NODES),
        *(f"memory_{name}_bytes" for name in DEVICE_CATEGORIES),
        "completed_per_second",
        "errors_per_second",
        *(f"latency_{kind}_p{percentile}_seconds" for kind, percentile in LATENCIES),
        "host_processor_share",
        "host_memory_share",
        *(f"core_{core_id}_utilization" for core_id in core_ids),
    ]


def make_row(before: View | None, view: View, core_ids: Sequence[int]) -> list[float]:
    """The row of a view; rates of executions count from the view before."""
    rates = [view.cores.get(core_id, CoreRates()) for core_id in core_ids]
    used = [
        view.cores[core_id] for core_id in core_ids if core_id in view.allocation and core_id in view.cores
    ]
    completed, errors = _execution_rates(before, view)
    is_timed = not view.processes or any(each.process.is_timed for each in view.processes)
    return [
        # Without simulated time nobody knows them, which is not 0.
        _mean([each.utilization for each in used]) if is_timed else nan,
        max((each.utilization for each in used), default=0.0) if is_timed else nan,
        sum(each.flops_per_second for each in used),
        max((each.throttled or 0.0 for each in used), default=0.0),
        *(_mean([each.engines.get(name, 0.0) for each in used]) for name in ENGINES),
        *(sum(each.bytes_per_second.get(name, 0.0) for each in used) for name in TRAFFIC_NODES),
        *_memory(view),
        completed,
        errors,
        *(_latency(view.processes, kind, percentile) for kind, percentile in LATENCIES),
        *_host(view),
        *(each.utilization for each in rates),
    ]


def _execution_rates(before: View | None, view: View) -> tuple[float, float]:
    """Completed and failed executions a second, of the processes that were there before."""
    if before is None:
        return 0.0, 0.0
    old = {each.process.pid: each.process for each in before.processes}
    wall_s = (view.sample.taken_ns - before.sample.taken_ns) / 1e9
    pairs = [
        _process_rates(old[each.process.pid], each.process, wall_s)
        for each in view.processes
        if each.process.pid in old
    ]
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)


def _process_rates(before: ProcessReading, after: ProcessReading, wall_s: float) -> tuple[float, float]:
    """Rates of one process; where it told its counts at moments of its own, between those."""
    passed_s = wall_s
    if after.published_at_s is not None and before.published_at_s is not None:
        passed_s = after.published_at_s - before.published_at_s
    if passed_s <= 0:
        return 0.0, 0.0
    old, new = _counts(before), _counts(after)
    return max(0, new[0] - old[0]) / passed_s, max(0, new[1] - old[1]) / passed_s


def _counts(process: ProcessReading) -> tuple[int, int]:
    statuses = total_statuses(process)
    return summed(statuses, SUMMARY_STATUSES)["completed"], sum(summed(statuses, ERROR_STATUSES).values())


def _memory(view: View) -> list[float]:
    total = dict.fromkeys(DEVICE_CATEGORIES, 0)
    for device in view.sample.tree.devices:
        for core in device.cores:
            for name, held in device_categories(core.device_memory).items():
                total[name] += held
    return [float(held) for held in total.values()]


def _latency(processes: Sequence[ProcessView], kind: str, percentile: int) -> float:
    """The slowest process's percentile in seconds; NaN where nothing was executed."""
    found = [each.total_latency if kind == "total" else each.device_latency for each in processes]
    return max((each[percentile] for each in found if each), default=nan)


def _host(view: View) -> tuple[float, float]:
    host = view.sample.host
    if host is None:
        return 0.0, 0.0
    usage = system_usage(view)
    memory = host.memory_used_bytes / host.memory_total_bytes if host.memory_total_bytes else 0.0
    return (usage["user"] + usage["system"]) / 100, memory


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
