"""`torch_xla.distributed.spmd`: nothing of it is there, as on Neuron; its names can be imported."""

from neuron_tools.compat.absent import NOT_PARTITIONED, names_of

__getattr__ = names_of(__name__, NOT_PARTITIONED)
