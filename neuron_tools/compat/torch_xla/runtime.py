"""`torch_xla.runtime`: which device, how many processes."""

from __future__ import annotations

import os

from neuron_tools.compat.absent import NOT_PARTITIONED, Absent

from .core import xla_model as _model


def device_type() -> str:
    """What the device is."""
    return "NEURON"


def global_ordinal() -> int:
    """The rank of this process."""
    return _model.get_ordinal()


def local_ordinal() -> int:
    """Its rank on its machine."""
    return _model.get_local_ordinal()


def world_size() -> int:
    """Processes of the job."""
    return _model.xrt_world_size()


def process_index() -> int:
    """The rank of this process."""
    return _model.get_ordinal()


def process_count() -> int:
    """Processes of the job."""
    return _model.xrt_world_size()


def global_device_count() -> int:
    """Devices of the job: one per process."""
    return _model.xrt_world_size()


def global_runtime_device_count() -> int:
    """Devices of the job: one per process."""
    return _model.xrt_world_size()


def addressable_device_count() -> int:
    """Devices of this process."""
    return 1


def local_device_count() -> int:
    """Devices of this process."""
    return 1


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
