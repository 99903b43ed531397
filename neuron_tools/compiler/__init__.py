"""StableHLO to Programs: passes over `hlo.Module`s, fusion, code generation."""

from neuron_tools.compiler.compile import compile_logical, compile_module
from neuron_tools.compiler.options import CompilerOptions

__all__ = ["CompilerOptions", "compile_logical", "compile_module"]
