"""One eager ATen operator, as the device saw it, to an `hlo.Module`."""

from neuron_tools.frontends.torch_eager.canonical import signature_key
from neuron_tools.frontends.torch_eager.operation import lower_operation

__all__ = ["lower_operation", "signature_key"]
