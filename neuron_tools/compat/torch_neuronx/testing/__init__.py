"""`torch_neuronx.testing`: whether what the device gave is what the CPU gave."""

from .validation import AllCloseSummary, assert_close, custom_allclose, logit_validation, neuron_allclose

__all__ = ["AllCloseSummary", "assert_close", "custom_allclose", "logit_validation", "neuron_allclose"]
