"""`torch_neuronx.utils`: what the device is."""

from .utils import SUPPORTED_TYPES, get_platform_target

__all__ = ["SUPPORTED_TYPES", "get_platform_target"]
