"""`nki.framework.compiled`."""

from neuron_tools.frontends.nki.compiled_call import CompileKernel

__all__ = ["CompileKernel"]
