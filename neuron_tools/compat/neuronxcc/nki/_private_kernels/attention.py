"""`neuronxcc.nki._private_kernels.attention`: models name its kernel when they are imported."""

from neuron_tools.compat.neuronxcc.nki.kernels.attention import attention_isa_kernel

__all__ = ["attention_isa_kernel"]
