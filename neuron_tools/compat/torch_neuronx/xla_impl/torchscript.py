"""`torch_neuronx.xla_impl.torchscript`: other weights for a traced model."""

from neuron_tools.frontends.torch_trace.weights import replace_weights

__all__ = ["replace_weights"]
