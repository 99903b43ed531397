"""`torch_neuronx.experimental.profiler.v2_x.custom_op_name`: its names can be imported."""

from neuron_tools.compat.absent import names_of

__getattr__ = names_of(__name__, "operations keep their modules and lines by themselves.")
