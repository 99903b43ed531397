"""What `neuron-ls` tells of each device, and the same as the JSON that AWS's tool prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuron_monitor.api.instance import InstanceFacts
from neuron_monitor.api.readings import DeviceFacts, ProcessReading
from neuron_monitor.api.records import TreeReading
from neuron_tools.frozen import frozen

NO_RUNTIME = "NA"


@frozen
class ListedProcess:
    """One process that uses a device."""

    pid: int
    command: str
    runtime_version: str


@frozen
class ListedDevice:
    """One device with its users.

    Attributes:
        core_ids: Logical cores as the runtime numbers them in the host.
    """

    facts: DeviceFacts
    core_ids: tuple[int, ...]
    processes: tuple[ListedProcess, ...]


@frozen
class Listing:
    """Everything that `neuron-ls` prints."""

    instance: InstanceFacts
    logical_core_size: int
    devices: tuple[ListedDevice, ...]


def make_listing(tree: TreeReading, instance: InstanceFacts, *, with_all: bool = False) -> Listing:
    """The listing of a reading; with `with_all`, also of processes that have no Neuron runtime."""
    devices = []
    first_core = 0
    for device in tree.devices:
        count = device.facts.core_count // tree.logical_core_size
        users = _users(device.facts.index, tree.processes, with_all=with_all)
        devices.append(ListedDevice(device.facts, tuple(range(first_core, first_core + count)), users))
        first_core += count
    return Listing(instance, tree.logical_core_size, tuple(devices))


def as_json(listing: Listing) -> list[dict[str, Any]]:
    """The listing in the form that AWS's `neuron-ls -j` prints on Trn2 hosts."""
    return [
        {
            "instance_type": listing.instance.type,
            "instance_id": listing.instance.id,
            "neuron_device": device.facts.index,
            "bdf": device.facts.bdf,
            "cpu_affinity": device.facts.cpu_affinity,
            "numa_node": device.facts.numa_node,
            "connected_to": list(device.facts.connected_to),
            "nc_count": len(device.core_ids),
            "logical_neuroncore_config": listing.logical_core_size,
            "memory_size": device.facts.memory_bytes,
            "neuroncore_ids": list(device.core_ids),
            "neuron_processes": [
                {
                    "pid": process.pid,
                    "command": process.command,
                    "neuron_runtime_version": process.runtime_version,
                }
                for process in device.processes
            ],
        }
        for device in listing.devices
    ]


def _users(index: int, processes: Sequence[ProcessReading], *, with_all: bool) -> tuple[ListedProcess, ...]:
    return tuple(
        ListedProcess(process.pid, process.command, process.runtime_version)
        for process in processes
        if any(core.device == index for core in process.cores.values())
        and (with_all or process.runtime_version != NO_RUNTIME)
    )
