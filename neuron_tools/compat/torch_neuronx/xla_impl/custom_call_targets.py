"""`torch_neuronx.xla_impl.custom_call_targets`: markers for AWS's compiler; they can be imported only."""

from neuron_tools.compat.absent import names_of

__getattr__ = names_of(__name__, "operations that AWS's builder of HLO makes are not simulated.")
