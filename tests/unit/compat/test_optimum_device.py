"""What optimum-neuron's modules that ask for devices are told, and what another release of them gets."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch

from neuron_tools import hardware
from neuron_tools.compat import optimum_device
from neuron_tools.device import api
from neuron_tools.device.api.devices import DeviceProperties


def absent():
    raise RuntimeError("No Neuron device detected.")


def asking():
    """The module that asks for devices, where there are none."""
    names = dict.fromkeys(optimum_device.ASKED, absent)
    return SimpleNamespace(**names)


class Memory:
    """The module that asks for memory: it reads the folder that it names."""

    SYSFS_NEURON_BASE = None

    def get_neuron_device_memory(self):
        return sorted(file.name for file in self.SYSFS_NEURON_BASE.iterdir())

    def NeuronDeviceMemory(self, devices):
        return devices


@pytest.fixture(params=["trn1", "inf2.24xlarge"])
def target(request):
    before = api.devices.configure_properties(DeviceProperties(target=request.param))
    yield request.param
    api.devices.configure_properties(before)


def test_the_simulated_instance_is_seen(target):
    system = asking()
    optimum_device.extend(system)
    instance = hardware.device(target).instance
    assert system.get_neuron_major() >= 0
    assert system.get_instance_name() == instance.name
    assert system.get_neuron_devices_count() == instance.chips
    assert system.get_available_cores() == torch.neuron.device_count()


def test_memory_is_read_from_what_the_simulated_driver_publishes(tmp_path, monkeypatch):
    (tmp_path / "neuron0").mkdir()
    monkeypatch.setenv("NEURON_SYSFS_ROOT", str(tmp_path))
    memory = Memory()
    optimum_device.extend_memory(memory)
    assert memory.get_neuron_device_memory() == ["neuron0"]


@pytest.mark.parametrize("root", ["", "/nowhere/neuron"])
def test_no_memory_is_held_where_nothing_is_published(root, monkeypatch):
    monkeypatch.setenv("NEURON_SYSFS_ROOT", root)
    memory = Memory()
    optimum_device.extend_memory(memory)
    assert memory.get_neuron_device_memory() == {}


def try_to_extend(monkeypatch, module):
    monkeypatch.setitem(sys.modules, optimum_device.SYSTEM, module)
    optimum_device._try_to_extend(optimum_device.extend, optimum_device.SYSTEM)


def test_a_release_that_is_made_otherwise_works_on_with_a_warning(monkeypatch):
    monkeypatch.setattr(optimum_device, "_is_ours", lambda package: True)
    with pytest.warns(RuntimeWarning, match="optimum-neuron does not see the device: .*get_neuron_major"):
        try_to_extend(monkeypatch, ModuleType(optimum_device.SYSTEM))


def test_awss_own_packages_say_themselves_what_is_there(monkeypatch):
    monkeypatch.setattr(optimum_device, "PACKAGE", "json")
    system = asking()
    try_to_extend(monkeypatch, system)
    assert system.get_neuron_major is absent
