"""Which device torchtune takes, and what a release of it that is made otherwise gets."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch

from neuron_tools.frontends import torchtune_device


class Devices(ModuleType):
    """torchtune's module of devices, with the CPU alone."""

    class DeviceSupport:
        @staticmethod
        def from_type(device_type):
            raise ValueError(device_type)

    def __init__(self):
        super().__init__("devices")
        self.get_device = torch.device
        self._get_device_type_from_env = lambda: "cpu"
        self._setup_device = lambda device: torch.device(device.type, 1)


@pytest.fixture
def devices():
    made = Devices()
    torchtune_device.extend(made)
    return made


def test_the_device_is_taken_before_the_cpu(devices, monkeypatch):
    assert devices._get_device_type_from_env() == "neuron"
    monkeypatch.setattr(torch.neuron, "is_available", lambda: False)
    assert devices._get_device_type_from_env() == "cpu"


@pytest.mark.parametrize("asked", [None, "neuron"])
def test_a_process_takes_the_device_of_its_number(devices, asked):
    assert devices.get_device(asked) == torch.device("neuron", 1)


def test_other_devices_are_torchtunes_own(devices):
    assert devices.get_device("cpu") == torch.device("cpu")
    assert devices.DeviceSupport.from_type("neuron").communication_backend == "neuron"
    with pytest.raises(ValueError, match="cpu"):
        devices.DeviceSupport.from_type("cpu")


def test_a_release_that_is_made_otherwise_works_on_with_a_warning(monkeypatch):
    for name in ("torchtune", "torchtune.utils", "torchtune.utils._device"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    with pytest.warns(RuntimeWarning, match="torchtune does not know the device neuron"):
        torchtune_device._try_to_extend()
