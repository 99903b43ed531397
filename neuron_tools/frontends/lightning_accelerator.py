"""Lightning's Trainer and Fabric on the device: accelerator "neuron", which "auto" takes before the CPU.

Lightning asks each device that it knows whether it is there, and knows no way to be told of another. So its
two connectors, which turn the arguments of Trainer and Fabric into devices, are extended once they are
imported; a program without Lightning pays nothing. Both of its distributions are served: `lightning`, and
`pytorch_lightning` on `lightning_fabric`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch

from neuron_tools.late_import import after_import

NAME = "neuron"
_CONNECTORS = (
    ("lightning.pytorch", "trainer.connectors.accelerator_connector", "_AcceleratorConnector"),
    ("pytorch_lightning", "trainer.connectors.accelerator_connector", "_AcceleratorConnector"),
    ("lightning.fabric", "connector", "_Connector"),
    ("lightning_fabric", "connector", "_Connector"),
)


def autoload() -> None:
    """The `torch.backends` entry point: wait for Lightning to be imported."""
    for package, module, connector in _CONNECTORS:
        after_import(f"{package}.{module}", functools.partial(_try_to_extend, package, module, connector))


def _try_to_extend(package: str, module: str, connector: str) -> None:
    """Extend one connector; a release of Lightning that is made otherwise works on as it is."""
    try:
        _extend(package, module, connector)
    except AttributeError as error:
        warnings.warn(f"{package} does not know the device neuron: {error}", RuntimeWarning, stacklevel=2)


def _extend(package: str, module: str, connector: str) -> None:
    accelerators = import_module(f"{package}.accelerators")
    registry = getattr(accelerators, "AcceleratorRegistry", None) or accelerators.ACCELERATOR_REGISTRY
    if NAME not in registry:
        registry.register(NAME, _accelerator_class(accelerators.Accelerator), description="AWS NeuronCores")
    chooser = getattr(import_module(f"{package}.{module}"), connector)
    strategies = import_module(f"{package}.strategies")
    parallel = strategies.DDPStrategy
    numbers = "determine_ddp_device_ids" if "pytorch" in package else "_determine_ddp_device_ids"
    setattr(parallel, numbers, _without_streams(getattr(parallel, numbers)))
    chooser._choose_auto_accelerator = staticmethod(_automatic(chooser._choose_auto_accelerator))
    chooser._choose_strategy = _one_device(chooser._choose_strategy, strategies.SingleDeviceStrategy)
    chooser._check_strategy_and_fallback = _as_gpu(chooser._check_strategy_and_fallback)
    chooser._check_and_init_precision = _autocast_here(chooser._check_and_init_precision)


def _automatic(original: Callable[[], str]) -> Callable[[], str]:
    """What "auto" means: other accelerators first, then this one, then the CPU."""

    @functools.wraps(original)
    def choose() -> str:
        chosen = original()
        return NAME if chosen == "cpu" and is_available() else chosen

    return choose


def _one_device(original: Callable[[Any], Any], strategy: Callable[..., Any]) -> Callable[[Any], Any]:
    """The strategy of one device: Lightning's own choice would put the model on the CPU."""

    @functools.wraps(original)
    def choose(self: Any) -> Any:
        if _is_ours(self) and self._num_nodes_flag <= 1 and len(self._parallel_devices) == 1:
            return strategy(device=self._parallel_devices[0])
        return original(self)

    return choose


def _without_streams(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The numbers that DDP is told: none, as for the CPU, or Lightning makes it on a stream of CUDA."""

    @functools.wraps(original)
    def numbers(self: Any) -> Any:
        return None if self.root_device.type == NAME else original(self)

    return numbers


def _as_gpu(original: Callable[[Any], None]) -> Callable[[Any], None]:
    """What strategies are allowed: those of a GPU, sharded ones among them."""

    @functools.wraps(original)
    def check(self: Any) -> None:
        flag = self._accelerator_flag
        if _is_ours(self):
            self._accelerator_flag = "cuda"
        try:
            original(self)
        finally:
            self._accelerator_flag = flag

    return check


def _autocast_here(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Mixed precision: autocast, and a scaler of losses, of this device instead of CUDA's."""

    @functools.wraps(original)
    def make(self: Any) -> Any:
        precision = original(self)
        if _is_ours(self) and getattr(precision, "device", None) == "cuda":
            return type(precision)(precision.precision, NAME)
        return precision

    return make


def _is_ours(connector: Any) -> bool:
    flag = connector._accelerator_flag
    return bool(flag == NAME or (not isinstance(flag, str) and flag.name() == NAME))


def is_available() -> bool:
    """Whether programs of this process find the device."""
    module = getattr(torch, NAME, None)
    return module is not None and bool(module.is_available())


def parse_devices(devices: int | str | list[int]) -> list[int]:
    """The devices' numbers, from what Trainer and Fabric take: how many, which, or "2", "0,1", -1 for all.

    Raises:
        ValueError: There are not so many.
    """
    count = torch.neuron.device_count()
    chosen = _chosen(devices, count)
    if not chosen or not all(0 <= device < count for device in chosen):
        raise ValueError(f"There are {count} neuron devices here, but devices={devices!r} was asked for.")
    return chosen


def _chosen(devices: int | str | list[int], count: int) -> list[int]:
    if isinstance(devices, str):
        text = devices.strip()
        if "," in text:
            return [int(number) for number in text.split(",") if number.strip()]
        devices = int(text)
    if isinstance(devices, int):
        return list(range(count if devices == -1 else devices))
    return list(devices)


def _accelerator_class(base: type) -> type:
    """The accelerator, for one of Lightning's distributions and its Trainer or its Fabric.

    Args:
        base: Its class `Accelerator`.
    """

    class NeuronAccelerator(base):
        """AWS NeuronCores, or the simulated device."""

        def setup_device(self, device: torch.device) -> None:
            torch.accelerator.set_device_index(device.index or 0)

        def teardown(self) -> None:
            torch.accelerator.empty_cache()

        def get_device_stats(self, device: torch.device) -> dict[str, Any]:
            return dict(torch.neuron.memory_stats(device))

        @staticmethod
        def parse_devices(devices: int | str | list[int]) -> list[int]:
            return parse_devices(devices)

        @staticmethod
        def get_parallel_devices(devices: list[int]) -> list[torch.device]:
            return [torch.device(NAME, device) for device in devices]

        @staticmethod
        def auto_device_count() -> int:
            return int(torch.neuron.device_count())

        @staticmethod
        def is_available() -> bool:
            return is_available()

        @staticmethod
        def name() -> str:
            return NAME

    return NeuronAccelerator
