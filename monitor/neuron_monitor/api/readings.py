"""Records of what was read at one moment: devices, their cores, the processes that use them.

Counters only grow while a tree stands; a rate is the difference of two readings by the time between them.
Records of which a sample makes hundreds are named tuples: they cost a third of a frozen data class to make.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from types import MappingProxyType
from typing import Any, NamedTuple

from neuron_monitor.api import layout
from neuron_monitor.api.latency import Histogram
from neuron_tools.frozen import frozen

_MEMORY = layout.MEMORY_SLICE
NOTHING: Mapping[str, int] = MappingProxyType({})


@frozen
class DeviceFacts:
    """What does not change while a device is there.

    Attributes:
        index: N of `/dev/neuronN`.
        core_count: Physical NeuronCores.
        architecture: e.g. "NDv3".
        core_architecture: e.g. "NCv3".
        name: e.g. "Trainium2".
        family: e.g. "Trn2".
        connected_to: Neighbours' indices, in the driver's order.
        memory_bytes: Device memory, 0 where nothing tells it.
        bdf: PCI address, "" where unknown.
        numa_node: NUMA node as text, "" where unknown.
        cpu_affinity: e.g. "0-47,96-143", "" where unknown.
    """

    index: int
    core_count: int
    architecture: str = ""
    core_architecture: str = ""
    name: str = ""
    family: str = ""
    serial_number: str = ""
    connected_to: tuple[int, ...] = ()
    memory_bytes: int = 0
    bdf: str = ""
    numa_node: str = ""
    cpu_affinity: str = ""


@frozen
class Power:
    """Power over the driver's last minute, in percent of the largest power."""

    status: str
    sampled_at_s: int
    minimum_percent: float
    maximum_percent: float
    average_percent: float


class CoreReading(NamedTuple):
    """Counters of one physical NeuronCore, as one row of `layout.CORE_COLUMNS`.

    Attributes:
        id: Index of the physical core in the host.
        words: One number a column, as `layout.packed` packs them; 0 where the driver has no such node.
        is_clocked: Whether the driver counts simulated time, engines, traffic and throttling.
    """

    id: int
    device: int
    core: int
    words: bytes = layout.NO_WORDS
    is_clocked: bool = False

    @property
    def counts(self) -> tuple[int, ...]:
        """One number a column."""
        return layout.unpacked(self.words)

    def count(self, column: str) -> int:
        """One counter, e.g. "flop_count" or "success"."""
        return layout.word(self.words, layout.COLUMN_OF[column])

    @property
    def busy_us(self) -> int:
        """Time in which the core executed something, in µs; of simulated time where `is_clocked`."""
        return self.count("nc_time_in_use")

    @property
    def elapsed_ns(self) -> int | None:
        """Simulated time that passed on the core; None on a real driver, where wall time counts."""
        return self.count("elapsed_ns") if self.is_clocked else None

    @property
    def statuses(self) -> Mapping[str, int]:
        """Executions by how they ended."""
        return dict(zip(layout.STATUS_NODES, self.counts[layout.STATUS_SLICE]))

    @property
    def device_memory(self) -> Mapping[str, int]:
        """Bytes of device memory held now, by category."""
        return dict(zip(layout.DEVICE_MEMORY_CATEGORIES, self.counts[layout.MEMORY_SLICE]))

    @property
    def device_memory_bytes(self) -> int:
        """Bytes of device memory held now, all categories."""
        return sum(self.counts[_MEMORY])

    @property
    def engine_busy_ns(self) -> Mapping[str, int]:
        """Simulated time in which each engine executed; all 0 on a real driver."""
        return dict(zip(layout.ENGINES, self.counts[layout.ENGINE_SLICE]))

    @property
    def traffic(self) -> Mapping[str, int]:
        """Bytes by kind; all 0 on a real driver."""
        return dict(zip(layout.TRAFFIC_NODES, self.counts[layout.TRAFFIC_SLICE]))


class DeviceReading(NamedTuple):
    """One device at one moment."""

    facts: DeviceFacts
    cores: tuple[CoreReading, ...]
    ecc: Mapping[str, int]
    host_memory: Mapping[str, int]
    power: Power | None = None


@frozen
class Model:
    """One loaded executable of a process."""

    name: str
    uuid: str
    model_id: int
    is_running: bool
    core: int
    execution_count: int = 0


class ProcessReading(NamedTuple):
    """One process that uses devices.

    Attributes:
        tag: NEURON_PROCESS_TAG, else the pid as text.
        logical_core_size: Physical cores that make one core of the process.
        is_timed: Whether its times are known: on a simulated device, only while simulated time is kept.
        elapsed_ns: Its own simulated time; None on a real driver, where wall time counts.
        published_at_s: When it told all this (Unix time); None on a real driver.
        cores: The counters of each core as far as they are this process's, by physical core id.
        latency: Histograms "device" and "total" of all its cores; empty on a real driver.
        models_told: The loaded executables as they were told; `models` has them as records.
        is_shared: Whether some core is used by other processes too, whose counts cannot be told apart.
    """

    pid: int
    tag: str
    command: str
    runtime_version: str
    logical_core_size: int
    cores: Mapping[int, CoreReading]
    host_memory: Mapping[str, int] = NOTHING
    models_told: Sequence[Mapping[str, Any]] = ()
    is_timed: bool = True
    elapsed_ns: int | None = None
    published_at_s: float | None = None
    rank: int | None = None
    profile: str | None = None
    is_shared: bool = False
    latency: Mapping[str, Histogram] = MappingProxyType({})

    @property
    def models(self) -> tuple[Model, ...]:
        """The loaded executables."""
        return tuple(
            Model(
                name=str(told.get("name") or ""),
                uuid=str(told.get("uuid") or ""),
                model_id=int(told.get("model_id") or 0),
                is_running=bool(told.get("is_running")),
                core=int(told.get("core") or 0),
                execution_count=int(told.get("execution_count") or 0),
            )
            for told in self.models_told
        )


def are_same(readings: Sequence[object], others: Sequence[object]) -> bool:
    """Whether readings are the same objects in the same order."""
    return readings is others or (len(readings) == len(others) and all(map(is_, readings, others)))
