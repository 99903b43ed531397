"""The series: AWS's first, under AWS's names and labels, then our own.

Source of the former: output of AWS's neuron-monitor-prometheus.py on inf1 and trn1n hosts (public notes, test
data of the OpenTelemetry collector). Ours follow the same style; docs/monitor-metrics.md lists all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from neuron_monitor.api.host import cpu_percents
from neuron_monitor.api.kubernetes import Pod
from neuron_monitor.api.latency import PERCENTILES
from neuron_monitor.api.layout import ECC_NODES, POWER_STATUS_VALID
from neuron_monitor.api.readings import DeviceReading
from neuron_monitor.api.view import ProcessView, View
from neuron_monitor.prometheus.exposition import Family, Kind, Labels
from neuron_monitor.report.executions import ERROR_STATUSES, SUMMARY_STATUSES, summed, total_statuses
from neuron_monitor.report.memory import DEVICE_CATEGORIES, host_categories, logical_memory
from neuron_monitor.report.spelling import keys_of
from neuron_monitor.report.system_groups import REPORTED_ECC, neuron_hardware_info

SERIES: dict[str, str] = {
    "execution_errors_total": "Executions that failed, by kind of error.",
    "execution_errors_created": "When the counter of failed executions began.",
    "execution_status_total": "Executions by how they ended.",
    "execution_status_created": "When the counter of executions began.",
    "execution_latency_seconds": "Latency of executions as the runtime sees it, of the last 10 s.",
    "neuron_runtime_memory_used_bytes": "Memory that a process holds on the host and on devices.",
    "neuron_runtime_vcpu_usage_ratio": "A process's share of the host's processors.",
    "neuroncore_utilization_ratio": "Share of time in which a NeuronCore executed something.",
    **{
        f"neuroncore_memory_usage_{name}": f"Device memory of a NeuronCore held for {name}, in bytes."
        for name in DEVICE_CATEGORIES
    },
    "hardware_ecc_events_total": "Bit errors, corrected and not, by memory.",
    "hardware_ecc_events_created": "When the counter of bit errors began.",
    "system_memory_total_bytes": "Memory of the host.",
    "system_memory_used_bytes": "Memory of the host in use.",
    "system_swap_total_bytes": "Swap of the host.",
    "system_swap_used_bytes": "Swap of the host in use.",
    "system_vcpu_count": "Processors of the host.",
    "system_vcpu_usage_ratio": "Share of the host's processor time.",
    "instance_info": "The instance, as labels.",
    "neuron_hardware_info": "The devices of the instance, as labels.",
    "neuroncore_flops_per_second": "Floating-point operations of the Tensor engine in a second.",
    "neuron_execution_device_latency_seconds": "Time of executions on the device, of the last 10 s.",
    "neuroncore_engine_utilization_ratio": "Share of time in which an engine executed something.",
    "neuroncore_traffic_bytes_total": "Bytes moved by or for a NeuronCore, by kind.",
    "neuroncore_throttled_ratio": "Share of time in which the Tensor engine ran slowed down.",
    "neuroncore_allocated": "Processes that use a physical NeuronCore.",
    "neuroncore_allocated_idle_seconds": "How long an allocated physical NeuronCore did nothing.",
    "neuron_device_memory_total_bytes": "Memory of a device.",
    "neuron_device_memory_used_bytes": "Memory of a device in use.",
    "neuron_device_power_ratio": "Power of a device in its last minute, as a share of the largest.",
    "neuron_process_info": "A process that uses devices, as labels.",
    "neuron_process_neuroncore": "A NeuronCore that a process uses.",
    "neuron_monitor_unreadable_nodes": "Nodes of the driver's tree that could not be read.",
    "neuron_monitor_sample_seconds": "How long the last sample took to take.",
}
"""Each series and its help text; those that count end in `_total`, as OpenMetrics has it."""
_TAKES_MAXIMUM = frozenset(
    {
        "execution_latency_seconds",
        "neuron_execution_device_latency_seconds",
        "neuroncore_utilization_ratio",
        "neuroncore_engine_utilization_ratio",
        "neuroncore_throttled_ratio",
        "neuron_process_info",
        "neuron_process_neuroncore",
        "execution_errors_created",
        "execution_status_created",
    }
)
_POWER_STATISTICS = ("min", "max", "avg")


def kind_of(name: str) -> Kind:
    """Whether a series counts."""
    return "counter" if name.endswith("_total") else "gauge"


@dataclass(slots=True)
class SeriesMaker:
    """Makes the families of each view.

    Attributes:
        created_s: When this exporter began, in Unix time: where its counters count from.
    """

    created_s: float
    families: dict[str, Family] = field(default_factory=dict)
    labels: Labels = field(default_factory=lambda: Labels({}))

    def make(self, view: View, pods: Mapping[int, Pod], sample_seconds: float) -> list[Family]:
        """All families of a view, in a fixed order."""
        self.families = {
            name: Family(name, kind_of(name), text, name in _TAKES_MAXIMUM) for name, text in SERIES.items()
        }
        facts = view.sample.instance
        self.labels = Labels(
            {
                "availability_zone": facts.availability_zone,
                "instance_id": facts.id,
                "instance_name": facts.name,
                "instance_type": facts.type,
                "region": facts.region,
                "subnet_id": facts.subnet_id,
            }
        )
        for process in view.processes:
            self._process(process, pods.get(process.process.pid))
        for device in view.sample.tree.devices:
            self._device(device, view)
        self._host(view)
        self._add("neuron_monitor_unreadable_nodes", len(view.sample.tree.faults))
        self._add("neuron_monitor_sample_seconds", sample_seconds)
        return list(self.families.values())

    def _add(self, family: str, value: float, **labels: str) -> None:
        self.families[family].add(self.labels.text(**labels), value)

    def _process(self, view: ProcessView, pod: Pod | None) -> None:
        process = view.process
        tag = {"runtime_tag": process.tag}
        if pod is not None:
            tag.update(pod=pod.pod, namespace=pod.namespace, container=pod.container)
        self._executions(view, tag)
        for usage, share in (("user", view.user_share), ("system", view.system_share)):
            self._add("neuron_runtime_vcpu_usage_ratio", share, usage_type=usage, **tag)
        for core in view.rates:
            self._core(view, core, tag)
        self._process_memory(view, tag)
        self._add(
            "neuron_process_info",
            1,
            pid=str(process.pid),
            rank="" if process.rank is None else str(process.rank),
            runtime_version=process.runtime_version,
            profile=process.profile or "",
            **tag,
        )

    def _executions(self, view: ProcessView, tag: Mapping[str, str]) -> None:
        statuses = total_statuses(view.process)
        for kind, count in summed(statuses, ERROR_STATUSES).items():
            self._add("execution_errors_total", count, error_type=kind, **tag)
            self._add("execution_errors_created", self.created_s, error_type=kind, **tag)
        for status, count in summed(statuses, SUMMARY_STATUSES).items():
            self._add("execution_status_total", count, status_type=status, **tag)
            self._add("execution_status_created", self.created_s, status_type=status, **tag)
        for family, found in (
            ("execution_latency_seconds", view.total_latency),
            ("neuron_execution_device_latency_seconds", view.device_latency),
        ):
            for percentile in PERCENTILES if found else ():
                self._add(family, found[percentile] if found else 0, percentile=f"p{percentile}", **tag)

    def _core(self, view: ProcessView, core: int, tag: Mapping[str, str]) -> None:
        rates, name = view.rates[core], str(core)
        self._add("neuron_process_neuroncore", 1, neuroncore=name, pid=str(view.process.pid), **tag)
        if not view.process.is_timed:
            return  # Times are not known, which is not 0: these series are absent.
        self._add("neuroncore_utilization_ratio", rates.utilization, neuroncore=name, **tag)
        self._add("neuroncore_flops_per_second", rates.flops_per_second, neuroncore=name, **tag)
        for engine, share in rates.engines.items():
            self._add("neuroncore_engine_utilization_ratio", share, engine=engine, neuroncore=name, **tag)
        if rates.throttled is not None:
            self._add("neuroncore_throttled_ratio", rates.throttled, neuroncore=name, **tag)

    def _process_memory(self, view: ProcessView, tag: Mapping[str, str]) -> None:
        process = view.process
        cores = logical_memory(process)
        device_bytes = sum(sum(memory.values()) for memory in cores.values())
        host_bytes = sum(host_categories(process.host_memory).values())
        for place, held in (("host", host_bytes), ("neuron_device", device_bytes)):
            self._add("neuron_runtime_memory_used_bytes", held, memory_location=place, **tag)
        for core, memory in cores.items():
            for category, held in memory.items():
                family = f"neuroncore_memory_usage_{category}"
                self._add(family, held, memory_location="None", neuroncore=str(core), **tag)
        for core_id, counters in process.cores.items():
            if counters.is_clocked:
                core_name = str(core_id // process.logical_core_size)
                for kind, count in counters.traffic.items():
                    self._add("neuroncore_traffic_bytes_total", count, kind=kind, neuroncore=core_name, **tag)

    def _device(self, device: DeviceReading, view: View) -> None:
        index = str(device.facts.index)
        events = [*REPORTED_ECC, *(name for name in ECC_NODES if name not in REPORTED_ECC)]
        for event in events:
            self._add(
                "hardware_ecc_events_total", device.ecc[event], event_type=event, neuron_device_index=index
            )
            self._add(
                "hardware_ecc_events_created", self.created_s, event_type=event, neuron_device_index=index
            )
        used = sum(core.device_memory_bytes for core in device.cores)
        self._add("neuron_device_memory_used_bytes", used, neuron_device_index=index)
        if device.facts.memory_bytes:
            total = device.facts.memory_bytes
            self._add("neuron_device_memory_total_bytes", total, neuron_device_index=index)
        power = device.power
        if power is not None and power.status == POWER_STATUS_VALID:
            values = (power.minimum_percent, power.maximum_percent, power.average_percent)
            for statistic, percent in zip(_POWER_STATISTICS, values):
                self._add(
                    "neuron_device_power_ratio", percent / 100, neuron_device_index=index, statistic=statistic
                )
        for core in device.cores:
            allocation = view.allocation.get(core.id)
            labels = {"neuron_device_index": index, "physical_neuroncore": str(core.id)}
            self._add("neuroncore_allocated", len(allocation.pids) if allocation else 0, **labels)
            if allocation:
                self._add("neuroncore_allocated_idle_seconds", allocation.idle_s, **labels)

    def _host(self, view: View) -> None:
        sample = view.sample
        self._add("instance_info", 1)
        info = neuron_hardware_info(sample.tree, keys_of("documented", ""))
        self._add("neuron_hardware_info", 1, **{name: str(value) for name, value in info.items()})
        if sample.host is None:
            return
        host = sample.host
        self._add("system_memory_total_bytes", host.memory_total_bytes)
        self._add("system_memory_used_bytes", host.memory_used_bytes)
        self._add("system_swap_total_bytes", host.swap_total_bytes)
        self._add("system_swap_used_bytes", host.swap_used_bytes)
        self._add("system_vcpu_count", len(host.cpu_ticks))
        usage = system_usage(view)
        for kind in ("user", "system"):
            self._add("system_vcpu_usage_ratio", usage[kind] / 100, usage_type=kind)


def system_usage(view: View) -> dict[str, float]:
    """Shares of the host's processor time by kind, in percent, between the last two looks at the host."""
    before, after = view.before.host, view.sample.host
    if before is None or after is None or not after.cpu_ticks:
        return {"user": 0.0, "system": 0.0}
    old = [before.cpu_ticks.get(cpu, ticks) for cpu, ticks in after.cpu_ticks.items()]
    return cpu_percents(tuple(map(sum, zip(*old))), tuple(map(sum, zip(*after.cpu_ticks.values()))))
