"""From traces to Programs."""

from neuron_tools.nki.lowering.program import lower

__all__ = ["lower"]
