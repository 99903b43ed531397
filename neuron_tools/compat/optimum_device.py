"""What optimum-neuron learns of the machine: the simulated one, where AWS's packages are absent.

It asks the driver's files in `/proc`, `/dev` and `/sys` for devices and their memory, and without them
compiles but does not run. Its modules that ask are extended once they are imported; a program without
optimum-neuron pays nothing.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuron_tools.late_import import after_import

if TYPE_CHECKING:  # each Python that a capture starts imports this module
    from neuron_tools.hardware import Device

PACKAGE = "torch_neuronx"
MAJOR = 0
"""Of the device files; it says that there are devices, and that none of them is a file."""
SYSTEM, MEMORY = "optimum.neuron.utils.system", "optimum.neuron.utils.neuron_device_memory"
ASKED = ("get_neuron_major", "get_instance_name", "get_neuron_devices_count", "get_available_cores")


def wait() -> None:
    """Extend them when they are imported."""
    after_import(SYSTEM, partial(_try_to_extend, extend, SYSTEM))
    after_import(MEMORY, partial(_try_to_extend, extend_memory, MEMORY))


def _try_to_extend(how: Callable[[Any], None], module: str) -> None:
    """Extend one, but where AWS's packages are; a release that is made otherwise works on as it is."""
    if not _is_ours(PACKAGE):
        return
    try:
        how(sys.modules[module])
    except AttributeError as error:
        warnings.warn(f"optimum-neuron does not see the device: {error}", RuntimeWarning, stacklevel=2)


def extend(system: Any) -> None:
    """Let optimum-neuron's module that asks for devices see the simulated ones.

    Args:
        system: The module.

    Raises:
        AttributeError: It is not made as known.
    """
    for name in ASKED:
        getattr(system, name)
    system.get_neuron_major = lambda: MAJOR
    system.get_instance_name = lambda: _device().instance.name
    system.get_neuron_devices_count = lambda: _device().instance.chips
    system.get_available_cores = _core_count


def extend_memory(memory: Any) -> None:
    """Let optimum-neuron's module that asks for device memory read what the simulated driver publishes.

    Args:
        memory: The module.

    Raises:
        AttributeError: It is not made as known.
    """
    read, nothing = memory.get_neuron_device_memory, memory.NeuronDeviceMemory

    def get_neuron_device_memory() -> Any:
        from neuron_tools.device.driver import root_folder

        folder = root_folder()
        if folder is None or not folder.exists():
            return nothing({})
        memory.SYSFS_NEURON_BASE = folder
        return read()

    memory.get_neuron_device_memory = get_neuron_device_memory


def _is_ours(package: str) -> bool:
    found = find_spec(package)
    return found is not None and Path(found.origin or "").parent.parent == Path(__file__).parent


def _device() -> Device:
    import torch

    from neuron_tools import hardware

    return hardware.device(torch.neuron.get_device_properties().target)


def _core_count() -> int:
    import torch

    return int(torch.neuron.device_count())
