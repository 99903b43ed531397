"""`torch_xla.runtime`: which device, how many processes."""

from __future__ import annotations

import os

from neuron_tools.frontends.torch_xla import spread as _spread, sync as _sync
from neuron_tools.frontends.torch_xla.errors import XlaError as _XlaError

from .core import xla_model as _model


def device_type() -> str:
    """What the device is."""
    return "NEURON"


global_ordinal = process_index = _model.get_ordinal
local_ordinal = _model.get_local_ordinal
world_size = process_count = _model.xrt_world_size
"""Processes of the job."""


def global_runtime_device_count() -> int:
    """NeuronCores of the job: each of several processes has one, and a lone process may use all."""
    return world_size() if world_size() > 1 else _spread.core_count()


def addressable_runtime_device_count() -> int:
    """NeuronCores of this process."""
    return 1 if world_size() > 1 else _spread.core_count()


global_device_count = world_size
"""Devices `xla` of the job: one a process, also where that runs a partitioned program on several cores."""


def addressable_device_count() -> int:
    """Devices `xla` of this process."""
    return 1


def local_process_count() -> int:
    """Processes of this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


local_device_count = local_process_count
"""Devices `xla` of this machine."""


def host_index() -> int:
    """Which of the job's machines this is; there is one."""
    return 0


def is_spmd() -> bool:
    """Whether one program is partitioned over the NeuronCores of this process."""
    return _spread.is_asked_for()


def use_spmd(auto: bool = False) -> None:
    """Partition programs over the NeuronCores of this process from now on, as `mark_sharding` says.

    Args:
        auto: Let the compiler choose how tensors lie; not there.

    Raises:
        XlaError: `auto` is set, or there are other processes.
    """
    if auto:
        raise _XlaError(
            "The compiler does not choose how tensors lie: say it with mark_sharding, without auto."
        )
    if world_size() > 1:
        raise _XlaError(
            f"One process runs a partitioned program on all cores, and there are {world_size()}: start it "
            "without torchrun; programs over several machines are not simulated."
        )
    _sync()
    _spread.spread_programs()
    os.environ["XLA_USE_SPMD"] = "1"


if os.environ.get("XLA_USE_SPMD", "0").lower() in ("1", "true"):
    use_spmd()


def using_pjrt() -> bool:
    """Whether the newer runtime interface is used; it is."""
    return True


def set_device_type(pjrt_device: str) -> None:
    """Accepted for compatibility: there is one kind of device."""


def initialize_cache(path: str, readonly: bool = False) -> None:
    """Accepted for compatibility: compiled graphs are in the compile cache (`NEURON_COMPILE_CACHE_URL`)."""
