"""The accumulation registers of the Vector and Scalar engines: one fp32 value per partition."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_tools.arrays import Array
from neuron_tools.nki.isa.enums import reduce_cmd as commands
from neuron_tools.nki.isa.issue import refuse
from neuron_tools.nki.operators import Operator
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.tracer import active
from neuron_tools.nki.values import column, write

VECTOR = "vector"
SCALAR = "scalar"


def reduced(values: Array, op: Operator) -> Array:
    """Reduction over all free dimensions; shape (P, 1), fp32.

    Raises:
        NkiValidationError: The operator cannot reduce.
    """
    if op.reduce is None:
        raise refuse(f"{op.name} cannot reduce")
    flat = values.reshape(values.shape[0], -1)
    result = op.reduce(flat, axis=1)
    return np.asarray(result, np.float32).reshape(-1, 1)


def accumulate(
    engine: str,
    values: Array,
    op: Operator,
    command: Any,
    result: NkiTensor | None,
    initial: Any = None,
    negate: bool = False,
) -> None:
    """Reduce `values` into an engine's registers as `command` says, and write them to `result`."""
    registers = active().accumulators
    if command is None or command is commands.idle:
        if result is None:
            return
        command = commands.reset_reduce
    if command is commands.reset:
        registers[engine] = np.full((values.shape[0], 1), op.identity, np.float32)
    else:
        new = reduced(values, op)
        if command is commands.load_reduce:
            start = np.broadcast_to(column(initial, values.shape[0], 2), new.shape)
            new = op.function(start, new)
        elif command is commands.reduce:
            held = registers.get(engine)
            if held is not None and held.shape == new.shape:
                new = op.function(held, new)
        registers[engine] = new
    if result is not None:
        final = registers[engine]
        write(result, -final if negate else final)
