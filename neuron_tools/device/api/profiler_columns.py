"""The columns of `key_averages()` by the device's name: scripts sort by f"self_{device.type}_time_total"."""

from __future__ import annotations

from operator import attrgetter

from torch.autograd.profiler_util import FormattedTimesMixin

_COLUMNS = (
    "device_time", "device_time_total", "self_device_time_total",
    "device_memory_usage", "self_device_memory_usage",
)  # fmt: skip


def name_columns(device: str) -> None:
    """Let events of PyTorch's profiler, alone and averaged, have what they have of a device by its name.

    PyTorch itself takes the names of CUDA, XPU and `privateuse1`.

    Args:
        device: Its type.
    """
    for column in _COLUMNS:
        setattr(FormattedTimesMixin, column.replace("device", device), property(attrgetter(column)))
