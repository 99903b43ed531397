"""`neuronxcc.nki._private_kernels.collectives`: nothing of it is there; its names can be imported."""

from neuron_tools.compat.absent import names_of

__getattr__ = names_of(__name__, "context parallelism takes AWS's closed kernels.")
