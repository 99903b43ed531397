"""What the chips are: generations, instances, instruction costs, DMA, links, as data with sources."""

from neuron_tools.hardware.catalogue import (
    Figure,
    chips,
    device,
    device_of,
    figure,
    figure_names,
    get,
    instances,
    targets,
)
from neuron_tools.hardware.device import Chip, Device, Instance
from neuron_tools.hardware.errors import UnknownFigureError, UnknownTargetError
from neuron_tools.hardware.links import Links, Place, links
from neuron_tools.hardware.logical_cores import (
    CORES_VARIABLE,
    LNC_VARIABLE,
    chosen_lnc,
    instance_cores,
    told_cores,
)
from neuron_tools.hardware.neuron_core import NeuronCore
from neuron_tools.hardware.on_chip import psum_bandwidth, sbuf_bandwidth
from neuron_tools.hardware.settings import apply_settings

__all__ = [
    "CORES_VARIABLE",
    "LNC_VARIABLE",
    "Chip",
    "Device",
    "Figure",
    "Instance",
    "Links",
    "NeuronCore",
    "Place",
    "UnknownFigureError",
    "UnknownTargetError",
    "apply_settings",
    "chips",
    "chosen_lnc",
    "device",
    "device_of",
    "figure",
    "figure_names",
    "get",
    "instance_cores",
    "instances",
    "links",
    "psum_bandwidth",
    "sbuf_bandwidth",
    "targets",
    "told_cores",
]
