"""Tells what of a JAX program a person put under `jax.jit` from what JAX computes operation by operation.

JAX compiles each operation that runs outside of `jax.jit` too, under the operation's name: "jit(add)". The
function that a person compiles stands in the stack of its own operations.
"""

from __future__ import annotations

import re

from neuron_tools.records.program import FrameworkOperation, Program

_OUTERMOST = re.compile(r"jit\(([^()]*)\)")


def is_single_operation(program: Program) -> bool:
    """Whether JAX launched a program for one operation, outside of any function that is compiled."""
    return all(map(_is_single, program.framework)) and (bool(program.framework) or not program.hlo)


def _is_single(operation: FrameworkOperation) -> bool:
    function = _OUTERMOST.match(operation.name)
    if function is None:
        return False
    return all(frame.function.rpartition(".")[2] != function[1] for frame in operation.stack)
