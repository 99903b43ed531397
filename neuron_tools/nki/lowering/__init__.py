"""From traces to Programs."""

from neuron_tools.nki.lowering.program import lower
from neuron_tools.nki.lowering.source import KernelSource, LoweredKernel

__all__ = ["KernelSource", "LoweredKernel", "lower"]
