"""PyTorch/XLA's way: operations on `xla` are recorded, and run as one compiled graph at a step's end."""

from neuron_tools.frontends.torch_xla.errors import XlaError
from neuron_tools.frontends.torch_xla.execution import sync
from neuron_tools.frontends.torch_xla.metrics import METRICS, Metrics
from neuron_tools.frontends.torch_xla.registration import register
from neuron_tools.frontends.torch_xla.tensor import XlaTensor

__all__ = ["METRICS", "Metrics", "XlaError", "XlaTensor", "register", "sync"]
