"""Streams and events on virtual time."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import torch

from neuron_tools.device.api.devices import DeviceLike, _exchange_device, device_index


def _device(device: DeviceLike) -> torch.device:
    return torch.device("neuron", device_index(device))


class Stream(torch.Stream):
    """A queue of device work. Streams of one NeuronCore share its engines; copies run beside compute."""

    def __new__(cls, device: DeviceLike = None, priority: int = 0, **identity: Any) -> Any:
        """A new stream of `device`, or the one that `stream_id`, `device_index`, `device_type` name."""
        if "stream_id" in identity:
            return super().__new__(cls, **identity)
        return super().__new__(cls, device=_device(device), priority=priority)


class _NeuronEvents(type):
    def __instancecheck__(cls, candidate: object) -> bool:
        return isinstance(candidate, torch.Event) and candidate.device.type == "neuron"


class Event(metaclass=_NeuronEvents):
    """A mark in a stream; `elapsed_time` between two is virtual time while time is simulated.

    Makes plain `torch.Event` objects: `elapsed_time` refuses subclasses.
    """

    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> torch.Event:
        """An event of the current device."""
        return torch.Event(
            device=_device(None), enable_timing=enable_timing, blocking=blocking, interprocess=interprocess
        )


def current_stream(device: DeviceLike = None) -> torch.Stream:
    """The calling thread's current stream of the device."""
    return torch.accelerator.current_stream(_device(device))


def default_stream(device: DeviceLike = None) -> torch.Stream:
    """The stream that work goes to where no other was chosen."""
    kind = int(torch._C._autograd.DeviceType.PrivateUse1)
    return torch.Stream(stream_id=0, device_index=device_index(device), device_type=kind)


def set_stream(stream: torch.Stream) -> None:
    """Makes `stream` current for the calling thread; its device becomes current too."""
    torch.accelerator.set_stream(stream)


class StreamContext:
    """Context manager: makes a stream current inside; None changes nothing."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.previous = current_stream(self.stream.device)
            self.previous_device = device_index(None)
            set_stream(self.stream)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.stream is not None:
            set_stream(self.previous)
            _exchange_device(self.previous_device)


stream = StreamContext
