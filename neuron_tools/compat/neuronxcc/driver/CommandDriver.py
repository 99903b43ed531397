"""`neuronxcc.driver.CommandDriver`: what is imported of it is named, and says what it is when it is used."""

from neuron_tools.compat.absent import names_of

__getattr__ = names_of(
    __name__,
    "AWS's compiler is not here; run kernels themselves, or models by torch_neuronx, torch.compile or JAX.",
)
