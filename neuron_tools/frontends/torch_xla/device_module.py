"""`torch.xla`: what PyTorch asks of a device's module, answered by the NeuronCore of this process."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch

_initialized = True


def is_available() -> bool:
    """Whether there is a device."""
    return True


def device_count() -> int:
    """Devices of this process."""
    return 1


def current_device() -> int:
    """The index of the only device."""
    return 0


def device(index: Any) -> nullcontext[None]:
    """Make a device current: there is only one."""
    return nullcontext()


def set_device(index: Any) -> None:
    """Make a device current: there is only one."""


def get_rng_state(device: Any = None) -> torch.Tensor:
    """State of the device's random numbers."""
    state: torch.Tensor = torch.neuron.get_rng_state()
    return state


def set_rng_state(state: torch.Tensor, device: Any = None) -> None:
    """Restore the state of the device's random numbers."""
    torch.neuron.set_rng_state(state)


def synchronize(device: Any = None) -> None:
    """Wait until the device has done what it was given."""
    torch.neuron.synchronize()


def __getattr__(name: str) -> Any:
    """Everything else is that of `torch.neuron`."""
    return getattr(torch.neuron, name)
