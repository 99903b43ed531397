"""The groups that are reported of the host: processors, memory, bit errors, and the state of each device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neuron_monitor.api import kernels
from neuron_monitor.api.allocation import CoreAllocation
from neuron_monitor.api.host import CPU_KINDS, HostReading, cpu_percents
from neuron_monitor.api.instance import InstanceFacts
from neuron_monitor.api.layout import COLUMN_OF, MEMORY_SLICE
from neuron_monitor.api.readings import DeviceFacts, DeviceReading, Power
from neuron_monitor.api.records import ROW_WIDTH, Rows, TreeReading
from neuron_monitor.report.process_groups import joined_version, percent_of
from neuron_monitor.report.sheet import SLOT, Number
from neuron_monitor.report.spelling import Keys

REPORTED_ECC = ("mem_ecc_corrected", "mem_ecc_uncorrected", "sram_ecc_uncorrected", "sram_ecc_corrected")
# The report counts generations of devices, not of architectures. Seen: Inferentia2 "v3", Trainium2 "v4"
# (neuron-monitor user guide; a report of an inf2 host); the others continue the row.
DEVICE_VERSIONS = {
    "inferentia": "v1",
    "trainium": "v2",
    "trainium1": "v2",
    "inferentia2": "v3",
    "trainium2": "v4",
    "trainium3": "v5",
}
StatusShape = tuple[DeviceFacts, Power | None, list[int], Mapping[int, tuple[int, ...]]]


def vcpu_usage(before: HostReading, after: HostReading, seconds: float) -> dict[str, Any]:
    """The group `vcpu_usage`, in percent; inside a limited container the mean is of the container's limit."""
    each = {
        str(cpu): cpu_percents(before.cpu_ticks.get(cpu, ticks), ticks)
        for cpu, ticks in after.cpu_ticks.items()
    }
    return {
        "average_usage": _container_usage(before, after, seconds) or _average(before, after),
        "usage_data": each,
        "context_switch_count": max(0, after.context_switches - before.context_switches),
    }


def memory_info(host: HostReading) -> dict[str, Any]:
    """The group `memory_info`."""
    return {
        "memory_total_bytes": host.memory_total_bytes,
        "memory_used_bytes": host.memory_used_bytes,
        "swap_total_bytes": host.swap_total_bytes,
        "swap_used_bytes": host.swap_used_bytes,
    }


def neuron_hw_counters(devices: Sequence[DeviceReading]) -> dict[str, Any]:
    """The group `neuron_hw_counters`; null where there is no device, as AWS's tool prints it."""
    entries = [
        {"neuron_device_index": device.facts.index, **{name: device.ecc[name] for name in REPORTED_ECC}}
        for device in devices
    ]
    return {"neuron_devices": entries or None}


def instance_info(facts: InstanceFacts) -> dict[str, str]:
    """What machine this is."""
    return {
        "instance_name": facts.name,
        "instance_id": facts.id,
        "instance_type": facts.type,
        "instance_availability_zone": facts.availability_zone,
        "instance_availability_zone_id": facts.availability_zone_id,
        "instance_region": facts.region,
        "ami_id": facts.ami_id,
        "subnet_id": facts.subnet_id,
        "error": facts.error,
    }


def neuron_hardware_info(tree: TreeReading, keys: Keys) -> dict[str, Any]:
    """What devices this machine has; those of a host are alike."""
    devices = tree.records.outlines[0]
    facts = devices[0].facts if devices else None
    size = tree.logical_core_size
    described: dict[str, Any] = {}
    if keys.has_device_facts:
        architecture = facts.core_architecture if facts else ""
        name = facts.name.lower() if facts else ""
        version = joined_version(architecture) if size > 1 else architecture.removeprefix("NC")
        described = {
            "neuron_device_type": name,
            "neuron_device_version": DEVICE_VERSIONS.get(name, ""),
            "neuroncore_version": version if facts else "",
        }
    counts = {
        "neuron_device_count": len(devices),
        "neuroncore_per_device_count": facts.core_count // size if facts else 0,
    }
    if keys.has_device_facts:
        counts["neuron_device_memory_size"] = facts.memory_bytes if facts else 0
        counts["logical_neuroncore_config"] = size
    return {**described, **counts, "error": "" if devices else f"no Neuron device in {tree.root}"}


def status_shape(device: DeviceReading, users: Mapping[int, tuple[int, ...]]) -> StatusShape:
    """What the structure of `device_status` is made of: as long as this is equal, so is that."""
    return device.facts, device.power, [core.id for core in device.cores], users


def status_numbers(
    device: DeviceReading, utilization: Mapping[int, float], allocation: Mapping[int, CoreAllocation]
) -> Sequence[Number]:
    """The numbers of `device_status`: bytes in use, then busy percent and whole idle seconds of each core."""
    columns = MEMORY_SLICE.start, MEMORY_SLICE.stop
    return kernels.device_numbers(device.cores, utilization, allocation, *columns)


def rows_numbers(
    before: Rows, after: Rows, wall_ns: int, allocation: Mapping[int, CoreAllocation] | None
) -> list[Number]:
    """The numbers of `device_status` of all devices, one behind the other.

    Args:
        allocation: None where no core that is used is idle.
    """
    made = after.arrangement
    idle = [0] * len(made.core_ids)
    for core_id, known in allocation.items() if allocation is not None else ():
        idle[made.row_of[core_id]] = int(known.idle_s)
    columns = COLUMN_OF["nc_time_in_use"], MEMORY_SLICE.start, MEMORY_SLICE.stop
    numbers = kernels.status_numbers(before.words, after.words, ROW_WIDTH, made.sizes, wall_ns, columns, idle)
    return [*numbers]


def device_status(shape: StatusShape) -> dict[str, Any]:
    """An entry of our group `neuron_device_status`: power, memory, and each physical core with its users."""
    facts, power, cores, users = shape
    return {
        "neuron_device_index": facts.index,
        "memory_total_bytes": facts.memory_bytes,
        "memory_used_bytes": SLOT,
        "power": None
        if power is None
        else {
            "status": power.status,
            "sampled_at": power.sampled_at_s,
            "minimum_percent": power.minimum_percent,
            "maximum_percent": power.maximum_percent,
            "average_percent": power.average_percent,
        },
        "physical_neuroncores": {
            str(core): {"utilization": SLOT, "pids": users.get(core, ()), "allocated_idle_seconds": SLOT}
            for core in cores
        },
    }


def _average(before: HostReading, after: HostReading) -> dict[str, float]:
    none = (0,) * len(CPU_KINDS)
    old = [before.cpu_ticks.get(cpu, ticks) for cpu, ticks in after.cpu_ticks.items()]
    sums_before = tuple(map(sum, zip(*old))) or none
    sums_after = tuple(map(sum, zip(*after.cpu_ticks.values()))) or none
    return cpu_percents(sums_before, sums_after)


def _container_usage(before: HostReading, after: HostReading, seconds: float) -> dict[str, float] | None:
    limit = after.container.cpu_limit
    if limit is None or seconds <= 0:
        return None
    available_us = limit * seconds * 1e6
    user = percent_of(after.container.user_us - before.container.user_us, available_us)
    system = percent_of(after.container.system_us - before.container.system_us, available_us)
    usage = dict.fromkeys(CPU_KINDS, 0.0)
    return {**usage, "user": user, "system": system, "idle": round(max(0.0, 100 - user - system), 2)}
