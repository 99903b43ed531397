"""TorchTitan's train.py on the CPU with gloo, which it and PyTorch do not offer by themselves.

TorchTitan wants a device with figures of memory; gloo cannot scale what it sums, so FSDP does that apart; and
PyTorch's attention with modifiers checks for devices whose compiled kernels it has, before its dense form.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import _utils
from torch.distributed.fsdp import FSDPModule
from torch.nn.attention import flex_attention


class CpuModule:
    """`torch.cpu`, with what TorchTitan asks a device for besides."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cpu, name)

    def current_device(self) -> int:
        return 0

    def get_device_name(self, device: Any = None) -> str:
        return "cpu"

    def get_device_properties(self, device: Any = None) -> SimpleNamespace:
        return SimpleNamespace(name="cpu", total_memory=1)

    def memory_stats(self, device: Any = None) -> dict[str, int]:
        return {}

    def reset_peak_memory_stats(self) -> None: ...

    def empty_cache(self) -> None: ...


def install() -> None:
    """Make the CPU the device that TorchTitan finds."""
    set_factor = FSDPModule.set_gradient_divide_factor

    def set_factor_and_sum(module: FSDPModule, factor: float) -> None:
        set_factor(module, factor)
        module.set_force_sum_reduction_for_comms(True)

    FSDPModule.set_gradient_divide_factor = set_factor_and_sum
    flex_attention._validate_device = lambda *tensors: None
    _utils._get_available_device_type = lambda: "cpu"
    _utils._get_device_module = lambda name: CpuModule()


if __name__ == "__main__":
    install()
    from torchtitan.train import main

    main()
