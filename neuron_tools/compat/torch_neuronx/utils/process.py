"""How this process uses the device, as TorchNeuron's functions of these names tell it."""

from __future__ import annotations

import os

import torch

LAUNCH_BLOCKING, LOGICAL_CORES = "NEURON_LAUNCH_BLOCKING", "NEURON_LOGICAL_NC_CONFIG"
MLIR_OPERATORS = "TORCH_NEURONX_MLIR_ATEN_OPS"


def is_sync_mode_enabled() -> bool:
    """Whether the variable `NEURON_LAUNCH_BLOCKING` asks to wait after each operation."""
    return os.environ.get(LAUNCH_BLOCKING) == "1"


def use_mlir_aten_ops() -> bool:
    """Whether the variable `TORCH_NEURONX_MLIR_ATEN_OPS` asks for operators by way of MLIR: not with 0.

    Here all operators are made in one way.
    """
    return os.environ.get(MLIR_OPERATORS, "1") == "1"


def get_lnc_setting() -> str:
    """How many physical NeuronCores make a logical one, as the device says."""
    return str(torch.neuron.get_device_properties().multi_processor_count)


def get_logical_neuron_cores() -> str:
    """What the variable `NEURON_LOGICAL_NC_CONFIG` says, else the device."""
    return os.environ.get(LOGICAL_CORES) or get_lnc_setting()


def get_neuron_registered_ops(as_sorted: bool = False, keep_variant: bool = False) -> set[str] | list[str]:
    """Operators that have a kernel of the device.

    Args:
        as_sorted: A sorted list, not a set.
        keep_variant: Names with that of the overload ("add.Tensor"), not "add".
    """
    registered = torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1")
    full_names = {name.split("::", 1)[1] for name in registered if "::" in name}
    names = full_names if keep_variant else {name.split(".")[0] for name in full_names}
    return sorted(names) if as_sorted else names
