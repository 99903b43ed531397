"""Computes 64-bit floating point intermediates in 32 bits: the chip has no wider arithmetic.

Lowering widens sums and statistics to f64 for accuracy; on the chip accumulation is fp32 anyway. The
types of parameters and results stay as the caller made them.
"""

from __future__ import annotations

from dataclasses import replace

from neuron_tools.compiler.hlo import Module, TensorType


def narrow_types(module: Module) -> Module:
    """Make every f64 value that is neither parameter nor result f32."""
    fixed = {*module.parameters, *module.results}
    if not any(value.type.dtype == "f64" for value in module.values):
        return module
    values = tuple(
        replace(value, type=TensorType(value.type.shape, "f32"))
        if value.type.dtype == "f64" and value.id not in fixed
        else value
        for value in module.values
    )
    return replace(module, values=values)
