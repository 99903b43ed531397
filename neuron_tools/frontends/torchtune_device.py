"""torchtune on the device: its recipes with `device: neuron`, or with none where it would take the CPU.

torchtune keeps a fixed list of devices. Its module of devices is extended once it is imported; a program
without torchtune pays nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch

from neuron_tools.late_import import after_import

NAME = "neuron"
_MODULE = "torchtune.utils._device"
SUPPORT = SimpleNamespace(device_type=NAME, device_name="NeuronCore", communication_backend=NAME)
"""What torchtune's `DeviceSupport` tells of each of its devices."""


def autoload() -> None:
    """The `torch.backends` entry point: wait for torchtune to be imported."""
    after_import(_MODULE, _try_to_extend)


def _try_to_extend() -> None:
    """Extend its devices; a release of torchtune that is made otherwise works on as it is."""
    try:
        extend(import_module(_MODULE))
    except AttributeError as error:
        warnings.warn(f"torchtune does not know the device neuron: {error}", RuntimeWarning, stacklevel=2)


def extend(devices: Any) -> None:
    """Let torchtune's module of devices know this one.

    Args:
        devices: The module.

    Raises:
        AttributeError: It is not made as known.
    """
    kinds = devices.DeviceSupport
    kinds.from_type = staticmethod(_supported(kinds.from_type))
    devices.get_device = _numbered(devices.get_device, devices)
    devices._get_device_type_from_env = _automatic(devices._get_device_type_from_env)


def _supported(original: Callable[[str], Any]) -> Callable[[str], Any]:
    def from_type(device_type: str) -> Any:
        return SUPPORT if device_type == NAME else original(device_type)

    return from_type


def _automatic(original: Callable[[], str]) -> Callable[[], str]:
    def device_type() -> str:
        found = original()
        return NAME if found == "cpu" and torch.neuron.is_available() else found

    return device_type


def _numbered(original: Callable[..., torch.device], devices: Any) -> Callable[..., torch.device]:
    """Like torchtune's own devices it is chosen by the number of the process."""

    def get_device(device: str | None = None) -> torch.device:
        if torch.device(device or devices._get_device_type_from_env()).type == NAME:
            device = devices._setup_device(torch.device(device or NAME))
        return original(device)

    return get_device
