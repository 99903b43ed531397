"""`torch_xla` where the real package is absent: lazy tensors on the simulated NeuronCore.

Importing it gives PyTorch the device `xla`.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch

from neuron_tools.frontends import torch_xla as _front_end
from neuron_tools.frontends.torch_xla.regions import Region

_front_end.register()
os.environ.setdefault("PJRT_DEVICE", "NEURON")  # as torch-neuronx does

from . import _XLAC, core, distributed, experimental, runtime  # noqa: E402  # the device first
from .core import xla_model as xm  # noqa: E402  # likewise

__all__ = [
    "_XLAC", "compile", "core", "device", "device_count", "devices", "distributed", "experimental", "launch",
    "manual_seed", "real_devices", "runtime", "step", "sync", "xm",
]  # fmt: skip
__version__ = "2.9.0"


def device(index: int | None = None) -> torch.device:
    """The device `xla`; each process has one, the NeuronCore that it runs on."""
    from .core import xla_model

    return xla_model.xla_device(index)


def devices() -> list[torch.device]:
    """The devices of this process."""
    return [device()]


def real_devices() -> list[str]:
    """Names of the devices behind those of this process."""
    from .core import xla_model

    return [xla_model.xla_real_devices([each])[0] for each in devices()]


def device_count() -> int:
    """Devices of this process."""
    return len(devices())


def sync(wait: bool = False, reset_scope: bool = True) -> None:
    """Run what was recorded.

    Args:
        wait: Wait until the device has done it.
        reset_scope: Accepted for compatibility.
    """
    from .core import xla_model

    xla_model.mark_step(wait)


def step() -> AbstractContextManager[None]:
    """Run what a block records as a graph of its own."""
    return Region().entered()


def compile(
    f: Callable[..., Any] | None = None,
    full_graph: bool | None = False,
    name: str | None = None,
    max_different_graphs: int | None = None,
    custom_compile_options: Mapping[str, Any] | None = None,
) -> Any:
    """Run each call of a function as a graph of its own; without a function, a block.

    Args:
        f: The function.
        full_graph: Refuse to run anything before the function's end.
        name: What its graphs are called; after the function by default.
        max_different_graphs: Refuse to run more different graphs of it.
        custom_compile_options: Accepted for compatibility.
    """
    region = Region(f, name, bool(full_graph), max_different_graphs)
    if f is None:
        return region.entered()

    @functools.wraps(f)
    def stepped(*args: Any, **kwargs: Any) -> Any:
        with region.entered():
            return f(*args, **kwargs)

    return stepped


def launch(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    start_method: str = "spawn",
    debug_single_process: bool = False,
) -> Any:
    """Run `fn(index, *args)`: in this process where torchrun started it, else in one process per core.

    Args:
        fn: The program.
        args: Its further arguments.
        start_method: "spawn", "fork" or "forkserver".
        debug_single_process: Run it here, on one core.
    """
    from .distributed import xla_multiprocessing

    return xla_multiprocessing.spawn(
        fn, args, nprocs=1 if debug_single_process else None, start_method=start_method
    )


def manual_seed(seed: int, device: torch.device | None = None) -> None:
    """Seed the device's random numbers."""
    torch.manual_seed(seed)
