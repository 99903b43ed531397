"""`torch_neuronx.nki_hop`: kernels in PyTorch graphs."""

from neuron_tools.frontends.nki.torch_custom_op import nki_op
from neuron_tools.frontends.nki.wrapper import wrap_nki

__all__ = ["nki_op", "wrap_nki"]
