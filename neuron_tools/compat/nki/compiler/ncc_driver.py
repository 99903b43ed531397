"""`nki.compiler.ncc_driver`: from a front end's module to a file of the compiled kernel."""

from neuron_tools.frontends.nki.front_end import CompiledKernel, CompileOptions

__nki_names__ = True
__all__ = ["CompileOptions", "CompiledKernel"]
