"""A report as single measurements, each with its unit and labels, for outputs that know no nested reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from neuron_monitor.report.reporter import Report
from neuron_tools.frozen import frozen

Unit = Literal["percent", "bytes", "seconds", "count", "count/second"]
PERCENTILES = ("p50", "p99")


@frozen
class Measurement:
    """One value.

    Attributes:
        name: e.g. "neuroncore_utilization".
        is_added: Whether it is what was added since the last report, not what there is now.
        labels: What it is of, e.g. {"runtime_tag": "train", "neuroncore": "3"}.
    """

    name: str
    value: float
    unit: Unit
    labels: Mapping[str, str]
    is_added: bool = False


def measurements(report: Report) -> list[Measurement]:
    """What is in a report of plain values; groups that are not due are left out."""
    host = _labels(report.get("instance_info") or {})
    found: list[Measurement] = []
    for process in report.get("neuron_runtime_data") or ():
        labels = {**host, "runtime_tag": process["neuron_runtime_tag"]}
        found += _of_process(process["report"], labels)
    return [*found, *_of_host(report.get("system_data") or {}, host)]


def _labels(facts: Mapping[str, Any]) -> dict[str, str]:
    names = ("instance_id", "instance_type")
    return {name: facts[name] for name in names if facts.get(name) not in (None, "", "unknown")}


def _of_process(groups: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[Measurement]:
    cores = (groups.get("neuroncore_counters") or {}).get("neuroncores_in_use") or {}
    for core, counters in cores.items():
        own = {**labels, "neuroncore": core}
        yield Measurement("neuroncore_utilization", counters["neuroncore_utilization"], "percent", own)
        flops = counters.get("flops", counters.get("effective_flops"))
        if flops is not None:
            yield Measurement("neuroncore_flops", flops, "count/second", own)
    if "execution_stats" in groups:
        yield from _executions(groups["execution_stats"], labels)
    if "memory_used" in groups:
        used = groups["memory_used"]["neuron_runtime_used_bytes"]
        device = used.get("neuron_device", used.get("device", 0))
        yield Measurement("runtime_host_memory", used["host"], "bytes", labels)
        yield Measurement("runtime_device_memory", device, "bytes", labels)


def _executions(stats: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[Measurement]:
    completed, errors = stats["execution_summary"]["completed"], sum(stats["error_summary"].values())
    yield Measurement("executions_completed", completed, "count", labels, is_added=True)
    yield Measurement("execution_errors", errors, "count", labels, is_added=True)
    latency = stats["latency_stats"]["total_latency"] or {}
    for percentile in PERCENTILES:
        if percentile in latency:
            yield Measurement(f"execution_latency_{percentile}", latency[percentile], "seconds", labels)


def _of_host(groups: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[Measurement]:
    usage = (groups.get("vcpu_usage") or {}).get("average_usage")
    if usage:
        yield Measurement("vcpu_usage", usage["user"] + usage["system"], "percent", labels)
    if "memory_used_bytes" in (groups.get("memory_info") or {}):
        yield Measurement("host_memory", groups["memory_info"]["memory_used_bytes"], "bytes", labels)
    for device in (groups.get("neuron_device_status") or {}).get("devices") or ():
        own = {**labels, "neuron_device": str(device["neuron_device_index"])}
        yield Measurement("device_memory", device["memory_used_bytes"], "bytes", own)
        if device["power"]:
            yield Measurement("device_power", device["power"]["average_percent"], "percent", own)
    for device in (groups.get("neuron_hw_counters") or {}).get("neuron_devices") or ():
        own = {**labels, "neuron_device": str(device["neuron_device_index"])}
        for kind in ("corrected", "uncorrected"):
            events = device[f"mem_ecc_{kind}"] + device[f"sram_ecc_{kind}"]
            yield Measurement(f"ecc_{kind}_events", events, "count", own)
