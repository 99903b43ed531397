"""`torch_neuronx.pyhlo.constant.serialize_torch`: nothing of it is there; its name can be imported."""

from neuron_tools.compat.torch_neuronx.pyhlo.scribe import __getattr__ as __getattr__
