"""`torch_neuronx.utils`: what the device is, and how the process uses it."""

from .process import (
    get_lnc_setting,
    get_logical_neuron_cores,
    get_neuron_registered_ops,
    is_sync_mode_enabled,
    use_mlir_aten_ops,
)
from .utils import SUPPORTED_TYPES, get_platform_target

__all__ = [
    "SUPPORTED_TYPES", "get_lnc_setting", "get_logical_neuron_cores", "get_neuron_registered_ops",
    "get_platform_target", "is_sync_mode_enabled", "use_mlir_aten_ops",
]  # fmt: skip
