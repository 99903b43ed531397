"""Ahead-of-time compilation: a model and an example become a TorchScript module around `.neff` archives."""

from neuron_tools.frontends.torch_trace.errors import NothingToRun, TraceError
from neuron_tools.frontends.torch_trace.trace import TraceOptions, trace

__all__ = ["NothingToRun", "TraceError", "TraceOptions", "trace"]
