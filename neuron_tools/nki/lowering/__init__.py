"""From traces to Programs."""

from neuron_tools.nki.lowering.program import lower
from neuron_tools.nki.lowering.source import KernelProgram, KernelSource, LoweredKernel

__all__ = ["KernelProgram", "KernelSource", "LoweredKernel", "lower"]
