"""Chips and instances: what stands around a NeuronCore."""

from __future__ import annotations

from neuron_tools.frozen import frozen
from neuron_tools.hardware.neuron_core import NeuronCore


@frozen
class Chip:
    """One Neuron device. Bandwidths are bytes per second and of the whole chip."""

    name: str
    cores: int
    dma_engines: int
    collective_cores: int
    hbm_bytes: int
    hbm_bandwidth: float
    link_bandwidth: float
    host_link_bandwidth: float


@frozen
class Instance:
    """One EC2 instance type (or UltraServer). 0 = not published."""

    name: str
    target: str
    chip: str
    chips: int
    vcpus: int
    host_bytes: int
    topology: str  # "single", "ring", "torus_4x4", "switch"
    chip_link: str
    network_bits_per_second: float
    source: str


@frozen
class Device:
    """An instance with its chips and cores: what a run happens on."""

    core: NeuronCore
    chip: Chip
    instance: Instance

    @property
    def physical_core_count(self) -> int:
        """NeuronCores of the whole instance."""
        return self.instance.chips * self.chip.cores

    @property
    def logical_core_count(self) -> int:
        """Cores that the runtime shows with the default LNC."""
        return self.physical_core_count // self.core.logical_core_size
