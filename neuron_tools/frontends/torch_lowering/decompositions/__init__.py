"""Operators taken apart before torch-mlir sees them, one module per family."""

from neuron_tools.frontends.torch_lowering.decompositions.table import (
    decomposition_table,
    fallback_table,
    replacement_of,
)

__all__ = ["decomposition_table", "fallback_table", "replacement_of"]
