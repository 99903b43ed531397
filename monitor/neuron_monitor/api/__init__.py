"""Neuron devices as typed readings: usable alone, without the monitor's reports or screens.

from neuron_monitor.api import DeviceTree, find_root

tree = DeviceTree(find_root())
for device in tree.read().devices:
    print(device.facts.name, [core.busy_us for core in device.cores])
"""

from __future__ import annotations

from neuron_monitor.api.nodes import Fault
from neuron_monitor.api.readings import CoreReading, DeviceFacts, DeviceReading, Model, Power, ProcessReading
from neuron_monitor.api.records import TreeReading
from neuron_monitor.api.root import find_root
from neuron_monitor.api.tree import DeviceTree

__all__ = [
    "CoreReading",
    "DeviceFacts",
    "DeviceReading",
    "DeviceTree",
    "Fault",
    "Model",
    "Power",
    "ProcessReading",
    "TreeReading",
    "find_root",
]
