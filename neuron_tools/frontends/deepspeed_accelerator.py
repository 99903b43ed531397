"""DeepSpeed on the device: its accelerator "neuron", chosen where DeepSpeed would choose the CPU.

DeepSpeed asks for each accelerator that it knows and takes the CPU where none is there, but can be told of
another. It is, once it is imported; a program without DeepSpeed pays nothing. `DS_ACCELERATOR` chooses as
always.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch

from neuron_tools.late_import import after_import

NAME = "neuron"
_PACKAGE = "deepspeed.accelerator"
_CHOICE = "DS_ACCELERATOR"
_AS_IN_TORCH = (
    "current_device", "current_stream", "default_stream", "device_count", "empty_cache", "get_rng_state",
    "initial_seed", "is_available", "is_bf16_supported", "manual_seed", "manual_seed_all",
    "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
    "reset_peak_memory_stats", "set_device", "set_rng_state", "stream", "synchronize",
)  # fmt: skip
"""What both `torch.neuron` and DeepSpeed's accelerators call by this name."""
_OLDER_NAMES = {
    "memory_cached": "memory_reserved",
    "max_memory_cached": "max_memory_reserved",
    "reset_max_memory_allocated": "reset_peak_memory_stats",
    "reset_max_memory_cached": "reset_peak_memory_stats",
}


def autoload() -> None:
    """The `torch.backends` entry point: wait for DeepSpeed to be imported."""
    after_import(f"{_PACKAGE}.real_accelerator", _try_to_choose)


def _try_to_choose() -> None:
    """Choose the accelerator; a release of DeepSpeed that is made otherwise works on as it is."""
    module = getattr(torch, NAME, None)
    if os.environ.get(_CHOICE, NAME) != NAME or module is None or not module.is_available():
        return
    if torch.cuda.is_available() and _CHOICE not in os.environ:
        return
    try:
        base = import_module(f"{_PACKAGE}.cpu_accelerator").CPU_Accelerator
        import_module(f"{_PACKAGE}.real_accelerator").set_accelerator(_accelerator_class(base)())
    except (AttributeError, TypeError) as error:
        warnings.warn(f"deepspeed does not know the device neuron: {error}", RuntimeWarning, stacklevel=2)


def _accelerator_class(base: type) -> type:
    """The accelerator: the CPU's, which has no kernels of its own, with this device's memory and streams.

    Args:
        base: DeepSpeed's class of the CPU.
    """

    class NeuronAccelerator(base):
        """AWS NeuronCores, or the simulated device."""

        Stream = property(lambda self: torch.neuron.Stream)
        Event = property(lambda self: torch.neuron.Event)

        def __init__(self) -> None:
            super().__init__()
            self._name = NAME
            self._communication_backend_name = NAME
            self._compile_backend = NAME

        def is_synchronized_device(self) -> bool:
            return False

        def device_name(self, device_index: int | None = None) -> str:
            return NAME if device_index is None else f"{NAME}:{device_index}"

        def device(self, device_index: int | None = None) -> Any:
            return torch.neuron.device(device_index)

        def current_device_name(self) -> str:
            return f"{NAME}:{torch.neuron.current_device()}"

        def default_generator(self, device_index: int) -> Any:
            return torch.neuron.default_generators[device_index]

        def total_memory(self, device_index: int | None = None) -> int:
            return int(torch.neuron.mem_get_info(device_index)[1])

        def available_memory(self, device_index: int | None = None) -> int:
            return int(torch.neuron.mem_get_info(device_index)[0])

        def is_fp16_supported(self) -> bool:
            return True

        def on_accelerator(self, tensor: torch.Tensor) -> bool:
            return bool(tensor.device.type == NAME)

        def get_op_builder(self, class_name: str) -> Any:
            found = super().get_op_builder(class_name)
            return _fused_adam_builder(found) if class_name == "FusedAdamBuilder" else found

    for name in _AS_IN_TORCH:
        setattr(NeuronAccelerator, name, _as_in_torch(name))
    for older, name in _OLDER_NAMES.items():
        setattr(NeuronAccelerator, older, _as_in_torch(name))
    return NeuronAccelerator


def _as_in_torch(name: str) -> Callable[..., Any]:
    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        return getattr(torch.neuron, name)(*arguments, **options)

    return method


def _fused_adam_builder(base: type) -> type:
    """Makes the operator of DeepSpeed's `FusedAdam`: PyTorch's own fused step, which the device has."""

    class FusedAdamBuilder(base):
        """As the CPU's, with nothing to build."""

        def is_compatible(self, verbose: bool = False) -> bool:
            return True

        def load(self, verbose: bool = True) -> SimpleNamespace:
            return SimpleNamespace(multi_tensor_adam=_multi_tensor_adam)

    return FusedAdamBuilder


def _multi_tensor_adam(
    chunk_size: int,
    noop_flag: torch.Tensor,
    tensors: Sequence[Sequence[torch.Tensor]],
    lr: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    step: int,
    adam_w_mode: int,
    bias_correction: int,
    weight_decay: float,
    *_: Any,
) -> None:
    """One step of many parameters: `tensors` are gradients, parameters and both moments of each."""
    gradients, parameters, first, second = map(list, tensors)
    # After infinitely many steps nothing is left to correct.
    count = float(step) if bias_correction else math.inf
    steps = [torch.tensor(count, device=parameter.device) for parameter in parameters]
    fused = torch._fused_adamw_ if adam_w_mode else torch._fused_adam_
    with torch.no_grad():
        fused(
            parameters, gradients, first, second, [], steps, lr=float(lr), beta1=beta1, beta2=beta2,
            weight_decay=weight_decay, eps=epsilon, amsgrad=False, maximize=False,
        )  # fmt: skip
