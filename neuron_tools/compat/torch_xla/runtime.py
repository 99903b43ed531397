"""`torch_xla.runtime`: which device, how many processes."""

from __future__ import annotations

import os

from neuron_tools.compat.absent import NOT_PARTITIONED, Absent

from .core import xla_model as _model


def device_type() -> str:
    """What the device is."""
    return "NEURON"


global_ordinal = process_index = _model.get_ordinal
local_ordinal = _model.get_local_ordinal
world_size = process_count = global_device_count = global_runtime_device_count = _model.xrt_world_size
"""Each process of the job has one device."""


def addressable_device_count() -> int:
    """Devices of this process."""
    return 1


local_device_count = addressable_device_count


def local_process_count() -> int:
    """Processes of this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def is_spmd() -> bool:
    """Whether one program is partitioned over devices; never here."""
    return False


use_spmd = Absent("torch_xla.runtime.use_spmd", NOT_PARTITIONED)
"""Partitioning one program over devices is not there."""


def using_pjrt() -> bool:
    """Whether the newer runtime interface is used; it is."""
    return True


def set_device_type(pjrt_device: str) -> None:
    """Accepted for compatibility: there is one kind of device."""


def initialize_cache(path: str, readonly: bool = False) -> None:
    """Accepted for compatibility: compiled graphs are in the compile cache (`NEURON_COMPILE_CACHE_URL`)."""
