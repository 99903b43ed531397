"""`torch_neuronx.pyhlo.scribe`: nothing of it is there; transformers-neuronx names it when it is imported."""

from neuron_tools.compat.absent import names_of

__getattr__ = names_of(
    __name__,
    "it writes HLO files for AWS's compiler; serve the model by neuronx-distributed-inference or "
    "torch_neuronx.trace.",
)
