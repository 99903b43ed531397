"""Links: how fast cores reach each other on a chip, between chips of a node, and between nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from neuron_tools.frozen import frozen
from neuron_tools.hardware.catalogue import data_text
from neuron_tools.hardware.device import Device
from neuron_tools.hardware.neuron_core import with_figures


@frozen
class Place:
    """Where a logical core is. All three count from 0 over the whole cluster."""

    rank: int
    chip: int
    node: int


@frozen
class Links:
    """Latencies and bandwidths between logical cores; times in nanoseconds, bandwidths in bytes per second.

    Bandwidths are of one direction. `data/links.json` and the chip and instance pages hold the figures.

    Attributes:
        topology: Of the chips in a node: "single", "ring", "torus_4x4" or "switch".
        cores_per_chip: Logical cores.
        chips_per_node: Chips.
        core_bandwidth: Bus bandwidth that one logical core sustains in a ring collective.
        chip_bandwidth: Out of a chip, over all its links; 0 where a node has one chip.
        node_bandwidth: Out of a node; 0 where no network is published.
        start_ns: From the last participant's trigger to the first byte.
        core_hop_ns: One hop within a chip.
        chip_hop_ns: One hop between chips.
        node_hop_ns: One hop between nodes.
        mesh_efficiency: Share of the bandwidth that the mesh algorithm reaches.
        doubling_efficiency: The same of recursive doubling and halving.
    """

    topology: str
    cores_per_chip: int
    chips_per_node: int
    core_bandwidth: float
    chip_bandwidth: float
    node_bandwidth: float
    start_ns: float
    core_hop_ns: float
    chip_hop_ns: float
    node_hop_ns: float
    mesh_efficiency: float
    doubling_efficiency: float

    def place(self, rank: int) -> Place:
        """Where a rank's logical core is, ranks filling chips and then nodes."""
        chip = rank // self.cores_per_chip
        return Place(rank, chip, chip // self.chips_per_node)

    def hops(self, chip: int, other: int) -> int:
        """Links on the shortest way between two chips of one node."""
        first, second = chip % self.chips_per_node, other % self.chips_per_node
        if first == second:
            return 0
        if self.topology.startswith("torus"):
            side = int(self.topology.rpartition("x")[2])
            return _around(first // side, second // side, side) + _around(first % side, second % side, side)
        return _around(first, second, self.chips_per_node) if self.topology == "ring" else 1

    def hop_ns(self, group: Sequence[int]) -> float:
        """Latency of one step between neighbours of a group: that of the farthest kind of step it has."""
        places = [self.place(rank) for rank in group]
        if len({place.node for place in places}) > 1:
            return self.node_hop_ns
        return self.chip_hop_ns if len({place.chip for place in places}) > 1 else self.core_hop_ns

    def bus_bandwidth(self, group: Sequence[int]) -> float:
        """Most that each rank of a ring over a group passes on, bytes per second.

        A ring laid along chips and nodes leaves each of them once, so that the slowest of a core, all links
        of a chip and the network of a node bounds it.
        """
        places = [self.place(rank) for rank in group]
        bounds = [self.core_bandwidth]
        if len({place.chip for place in places}) > 1 and self.chip_bandwidth > 0:
            bounds.append(self.chip_bandwidth)
        if len({place.node for place in places}) > 1 and self.node_bandwidth > 0:
            bounds.append(self.node_bandwidth)
        return min(bounds)

    def replace(self, **figures: object) -> Links:
        """Links that differ in the named figures, for what-if runs.

        Raises:
            UnknownFigureError: A name is no figure of links.
        """
        return with_figures(self, figures, "Links have")


def links(device: Device) -> Links:
    """The links of a machine, between its logical cores."""
    core, chip, instance = device.core, device.chip, device.instance
    figures = {name: entry["value"] for name, entry in _figures(core.name).items()}
    share = figures.pop("direction_share")
    figures["core_bandwidth"] *= core.logical_core_size
    return Links(
        topology=instance.topology,
        cores_per_chip=max(chip.cores // core.logical_core_size, 1),
        chips_per_node=instance.chips,
        chip_bandwidth=chip.link_bandwidth * share if instance.chips > 1 else 0.0,
        node_bandwidth=instance.network_bits_per_second / 8.0,
        **figures,
    )


def _around(first: int, second: int, length: int) -> int:
    """Steps between two places of a ring."""
    apart = abs(first - second)
    return min(apart, length - apart)


def _figures(core_name: str) -> Mapping[str, dict[str, Any]]:
    data = _data()
    return {**data["all"], **data[core_name]}


@lru_cache(maxsize=1)
def _data() -> dict[str, dict[str, dict[str, Any]]]:
    data: dict[str, dict[str, dict[str, Any]]] = json.loads(data_text("links.json"))
    return data
