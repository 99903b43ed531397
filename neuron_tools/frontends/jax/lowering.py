"""A computation that JAX lowered, kept as bytecode, to an `hlo.Module`."""

from __future__ import annotations

import sys
from typing import Any

from neuron_tools.compiler.hlo import Module
from neuron_tools.compiler.stablehlo import read_module
from neuron_tools.frontends.jax import location
from neuron_tools.frontends.jax.origins import LocationOrigins


def lower(bytecode: bytes) -> Module:
    """Read StableHLO as `jax.jit` gives it to XLA, or as XLA partitioned it for one device.

    Args:
        bytecode: The module, with locations, in MLIR's bytecode or text.

    Returns:
        What one device runs. Each operation's framework row has JAX's name of it, its module and its stack.

    Raises:
        StableHloError: A value has no static shape.
    """
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    with mlir.make_ir_context():
        module = ir.Module.parse(bytecode)
        return _with_kernels(
            read_module(module, origins=LocationOrigins(), parameter_names=_parameter_names(module))
        )


def _with_kernels(module: Module) -> Module:
    """NKI kernels with their Programs, where the process has called any."""
    if "neuron_tools.frontends.jax.kernel_primitive" not in sys.modules:
        return module
    from neuron_tools.frontends.jax.kernel_primitive import spliced

    return spliced(module)


def _parameter_names(module: Any) -> tuple[str, ...]:
    """The arguments' names as JAX spells them: "params['w1']"."""
    for view in module.operation.regions[0].blocks[0].operations:
        operation = view.operation
        if operation.name == "func.func" and str(operation.attributes["sym_name"]) == '"main"':
            arguments = operation.regions[0].blocks[0].arguments
            return tuple(location.parse(str(argument.location)).path for argument in arguments)
    return ()
