"""`torch_neuronx.xla_impl.custom_op`: nothing of it is there; its names can be imported."""

from neuron_tools.compat.absent import names_of

__getattr__ = names_of(__name__, "operators in C++ for the GpSimd engine are not simulated.")
