"""`torch_neuronx.xla_impl.ops`: the older decorator for kernels."""

from neuron_tools.compat.torch_neuronx.nki_jit import nki_jit

__all__ = ["nki_jit"]
