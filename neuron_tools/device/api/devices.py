"""Which NeuronCores there are, what they are, and which one is current."""

from __future__ import annotations

import os
from dataclasses import replace
from types import TracebackType
from typing import TypeAlias

import torch

from neuron_tools.device import native
from neuron_tools.device.api.choice import CHOICE
from neuron_tools.frozen import frozen

DeviceLike: TypeAlias = "torch.device | str | int | None"
_core = native.core()


@frozen
class DeviceProperties:
    """What `torch.neuron.get_device_properties` tells.

    Attributes:
        description: The chip and core, as users know it. It has "neuron" in it: programs look for that.
        total_memory: Device memory of one NeuronCore in bytes.
        multi_processor_count: Compute cores behind one device index.
        major: NeuronCore version, the number after "v".
        minor: Always 0.
        target: Generation or instance that is simulated, as `--target` names it.
    """

    description: str = "neuron: NeuronCore (simulated)"
    total_memory: int = 0
    multi_processor_count: int = 1
    major: int = 3
    minor: int = 0
    target: str = "trn2"

    @property
    def name(self) -> str:
        """The instance family, as "trn2": what TorchNeuron gives."""
        return self.target.split(".")[0]


_properties = DeviceProperties()


def configure_properties(properties: DeviceProperties) -> DeviceProperties:
    """Says what the devices are; `total_memory` 0 stands for the memory limit, else the host's memory.

    Returns:
        What was said before.
    """
    global _properties
    before, _properties = _properties, properties
    return before


def device_index(device: DeviceLike) -> int:
    """The index of a device given in any of PyTorch's ways; the current one for None and plain "neuron".

    Raises:
        ValueError: The device is of another type.
    """
    if device is None:
        return current_device()
    if isinstance(device, int):
        return current_device() if device < 0 else device
    parsed = torch.device(device)
    if parsed.type != "neuron":
        raise ValueError(f"Expected a neuron device, got {parsed}.")
    return current_device() if parsed.index is None else int(parsed.index)


def is_available() -> bool:
    """Whether there is a NeuronCore to use."""
    return device_count() > 0


def is_initialized() -> bool:
    """Always true: nothing is started on first use."""
    return True


def init() -> None:
    """Does nothing: the device is ready when `import torch` ends."""


_lazy_init = init


def device_count() -> int:
    """NeuronCores of this process: `NEURON_RT_NUM_CORES`, `NEURON_RT_VISIBLE_CORES`, else all of the instance
    (64 logical ones of `--target trn2.48xlarge`); 2 where the target names a generation."""
    return int(_core.device_count())


def current_device() -> int:
    """The calling thread's device index: the one set last in it, else the one that `set_device` set last in
    another thread, else `LOCAL_RANK` modulo the device count."""
    return int(_core.current_device())


def set_device(device: DeviceLike) -> None:
    """Makes `device` current for the calling thread, and for all in which none was set."""
    _core.choose_device(device_index(device))
    CHOICE.make(device)


def _exchange_device(index: int) -> int:
    return int(_core.exchange_device(index)) if index >= 0 else -1


def _maybe_exchange_device(index: int) -> int:
    return _exchange_device(index if index < device_count() else -1)


def synchronize(device: DeviceLike = None) -> None:
    """Waits until all work of the device is done: moves the host's virtual clock to the device's finish."""
    torch.accelerator.synchronize(torch.device("neuron", device_index(device)))


def _host_memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def get_device_properties(device: DeviceLike = None) -> DeviceProperties:
    """What the device is.

    Raises:
        RuntimeError: There is no such device.
    """
    index = device if isinstance(device, int) else device_index(device)
    if not 0 <= index < device_count():
        raise RuntimeError(
            f"There is no device neuron:{index}: this process has {device_count()} NeuronCore(s)."
        )
    total = _properties.total_memory or native.memory_limit() or _host_memory_bytes()
    return replace(_properties, total_memory=total)


def get_device_name(device: DeviceLike = None) -> str:
    """The chip and core."""
    return get_device_properties(device).description


def get_device_capability(device: DeviceLike = None) -> tuple[int, int]:
    """(NeuronCore version, 0)."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def get_arch_list() -> list[str]:
    """What programs are compiled for: the device's NeuronCore version, as "neuroncore-v3"."""
    return [f"neuroncore-v{get_device_properties().major}"]


def can_device_access_peer(device: DeviceLike, peer_device: DeviceLike) -> bool:
    """Whether one device can read another's memory: any two of a machine can, over NeuronLink.

    Raises:
        AssertionError: There is no such device; the error is that of `torch.cuda`.
    """
    first, second = device_index(device), device_index(peer_device)
    for index in (first, second):
        if not 0 <= index < device_count():
            raise AssertionError(f"Invalid device id {index}: there are {device_count()} NeuronCores.")
    return first != second


class device:
    """Context manager: makes a device current inside.

    Example:
        >>> with torch.neuron.device(1):
        ...     torch.zeros(2, device="neuron").device.index
        1
    """

    def __init__(self, device: DeviceLike) -> None:
        self.idx = device_index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _exchange_device(self.idx)
        CHOICE.enter(self.idx)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _exchange_device(self.prev_idx)
        CHOICE.leave()


class _DeviceGuard(device):
    """The form that PyTorch's generated code uses."""

    def __init__(self, index: int) -> None:
        self.idx = index
        self.prev_idx = -1


class device_of(device):
    """Context manager: makes a tensor's device current inside; nothing for a tensor elsewhere."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.idx = tensor.device.index if tensor.device.type == "neuron" else -1
        self.prev_idx = -1
