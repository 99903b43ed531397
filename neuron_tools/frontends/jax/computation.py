"""What JAX compiled, as far as the simulated device needs it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from neuron_tools.compiler.hlo import Module
from neuron_tools.frontends.jax.donation import donors_of, with_donors
from neuron_tools.frontends.jax.lowering import lower
from neuron_tools.frontends.jax.partitioning import bytecode_of, partition_count, partitioned
from neuron_tools.frozen import frozen


@frozen
class Computation:
    """One module that JAX gave to XLA.

    Attributes:
        name: "jit_step".
        bytecode: StableHLO with locations.
        key: Stands for the module in this process: equal modules have equal keys.
        part: Of a sharded module, what one device runs, as `partitioning` keeps it; None of a plain one.
    """

    name: str
    bytecode: bytes
    key: str
    part: bytes | None = None

    @classmethod
    def of(cls, module: Any) -> Computation:
        """Keep an `ir.Module` of JAX's binding: XLA may change it afterwards."""
        from jax._src.interpreters import mlir

        bytecode = mlir.module_to_bytecode(module)
        name = str(module.operation.attributes["sym_name"]).strip('"')
        return cls(name, bytecode, hashlib.sha256(bytecode).hexdigest())

    @classmethod
    def compiled(cls, module: Any, options: Any, compile_it: Callable[[], Any]) -> tuple[Any, Computation]:
        """Let XLA compile a module, and keep what one device runs of it.

        Args:
            module: An `ir.Module` of JAX's binding.
            options: Its `CompileOptions`.
            compile_it: Compiles the module with them, anew.

        Returns:
            What `compile_it` returns, and the computation.
        """
        whole = cls.of(module)
        if partition_count(module) == 1:
            return compile_it(), whole
        with partitioned(options) as read:
            return compile_it(), replace(whole, part=read())

    def lower(self) -> Module:
        """The compiler's view of it.

        Raises:
            NeuronToolsError: It cannot be lowered.
        """
        if self.part is None:
            return lower(self.bytecode)
        return with_donors(lower(bytecode_of(self.part)), donors_of(self.bytecode))
