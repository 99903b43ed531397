"""Arguments that a computation is given for good, to be the memory of results that XLA chooses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from neuron_tools.compiler.hlo import Module

_DONOR = "jax.buffer_donor"
"""JAX's mark of them where it does not know yet how the results lie over devices."""


def donors_of(bytecode: bytes) -> tuple[int, ...]:
    """Positions of the arguments that JAX marked as given for good.

    Args:
        bytecode: StableHLO as `jax.jit` gives it to XLA.
    """
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    with mlir.make_ir_context():
        operations = [view.operation for view in ir.Module.parse(bytecode).body]
        main = next(each for each in operations if str(each.attributes.get("sym_name")) == '"main"')
        if "arg_attrs" not in main.attributes:
            return ()
        given: Any = main.attributes["arg_attrs"]
        return tuple(position for position, attributes in enumerate(given) if _DONOR in attributes)


def with_donors(module: Module, donors: Sequence[int]) -> Module:
    """Let each donor be the memory of the first result of its type that has no memory of another.

    Args:
        module: What one device runs.
        donors: Positions of parameters.
    """
    taken = dict(module.aliases)
    free = defaultdict(list)
    for result in reversed(range(len(module.results))):
        if result not in taken:
            free[module.values[module.results[result]].type].append(result)
    for donor in sorted(set(donors) - set(taken.values())):
        fitting = free[module.values[module.parameters[donor]].type]
        if fitting:
            taken[fitting.pop()] = donor
    return replace(module, aliases=tuple(sorted(taken.items())))
