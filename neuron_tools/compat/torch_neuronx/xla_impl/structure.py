"""`torch_neuronx.xla_impl.structure`: nothing of it is there; its names can be imported."""

from neuron_tools.compat.absent import names_of

__getattr__ = names_of(__name__, "AWS's compiler works on files of its own there; use torch_neuronx.trace.")
