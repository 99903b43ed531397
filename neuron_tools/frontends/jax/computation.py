"""What JAX compiled, as far as the simulated device needs it."""

from __future__ import annotations

import hashlib
from typing import Any

from neuron_tools.compiler.hlo import Module
from neuron_tools.frontends.jax.lowering import lower
from neuron_tools.frozen import frozen


@frozen
class Computation:
    """One module that JAX gave to XLA.

    Attributes:
        name: "jit_step".
        bytecode: StableHLO with locations.
        key: Stands for the module in this process: equal modules have equal keys.
    """

    name: str
    bytecode: bytes
    key: str

    @classmethod
    def of(cls, module: Any) -> Computation:
        """Keep an `ir.Module` of JAX's binding: XLA may change it afterwards."""
        from jax._src.interpreters import mlir

        bytecode = mlir.module_to_bytecode(module)
        name = str(module.operation.attributes["sym_name"]).strip('"')
        return cls(name, bytecode, hashlib.sha256(bytecode).hexdigest())

    def lower(self) -> Module:
        """The compiler's view of it.

        Raises:
            NeuronToolsError: It cannot be lowered.
        """
        return lower(self.bytecode)
