"""The `torch.backends` entry point: gives PyTorch the `neuron` device when `import torch` ends.

Whatever goes wrong here must not break `import torch` for programs that never use the device.
"""

from __future__ import annotations

import atexit
import sys
import warnings
from contextlib import suppress
from importlib import import_module

from neuron_tools.device.distributed import registration as distributed
from neuron_tools.device.driver.runtime import publish_from_first_use
from neuron_tools.device.foreign_tensors import refuse_foreign_tensors
from neuron_tools.device.shutdown import wait_for_autograd


def autoload() -> None:
    """Registers the device; on failure warns with one line that says what to do."""
    try:
        register()
    except Exception as error:
        warnings.warn(f"The neuron device is not available: {error}", RuntimeWarning, stacklevel=2)


def register() -> None:
    """Registers the device and `torch.neuron`; does nothing the second time.

    Raises:
        DeviceBuildError: The device's core cannot be built or loaded.
        RuntimeError: Another PrivateUse1 back end is registered in this process.
    """
    import torch

    if "torch.neuron" in sys.modules:
        return
    from neuron_tools.device import native

    native.core()
    torch.utils.rename_privateuse1_backend("neuron")
    from neuron_tools.device import api, training
    from neuron_tools.device.api import choice
    from neuron_tools.device.api.profiler_columns import name_columns

    torch._register_device_module("neuron", api)
    torch.utils.generate_methods_for_privateuse1_backend(
        for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
    )
    native.core().register_kernels()
    native.core().register_graphs()
    refuse_foreign_tensors()
    training.install()
    choice.install()
    name_columns("neuron")
    publish_from_first_use()
    distributed.register()
    _prevent_late_profiler_import()
    torch.set_autocast_dtype("neuron", torch.bfloat16)
    atexit.register(wait_for_autograd)


def _prevent_late_profiler_import() -> None:
    # torch 2.13 imports this module inside a running profile with sources and device rows, which leaves the
    # profiler with a dangling name: key_averages() then fails now and then with a UnicodeDecodeError.
    with suppress(ImportError):
        import_module("torch.profiler._cupti_monitor")
