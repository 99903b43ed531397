"""`torch_xla.experimental.xla_sharding`: nothing of it is there; its names can be imported."""

from neuron_tools.compat.absent import NOT_PARTITIONED, names_of

__getattr__ = names_of(__name__, NOT_PARTITIONED)
