"""Where each instruction of a Program comes from in its kernel: call stacks and loop variables."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from neuron_tools.simulator.program import Frame, Program

Int32Array = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class KernelSource:
    """The kernel behind a Program; rows are those of its instruction table.

    Attributes:
        name: The kernel's name.
        stacks: Call stacks inside the kernel, innermost frame first.
        loops: (variable, file, line) of each loop; "_" where the variable has no name.
        calls: Name of each kind of call, e.g. "nc_matmul".
        stack: (instructions,) row of `stacks`, -1 unknown.
        iteration: (instructions,) row of `iterations`, -1 outside loops.
        call: (instructions,) number of the call that it is a part of.
        call_kind: (calls made,) row of `calls`.
        iterations: (iterations, 3): enclosing iteration or -1, row of `loops`, value of the variable.
    """

    name: str
    stacks: tuple[tuple[Frame, ...], ...]
    loops: tuple[tuple[str, str, int], ...]
    calls: tuple[str, ...]
    stack: Int32Array
    iteration: Int32Array
    call: Int32Array
    call_kind: Int32Array
    iterations: Int32Array


@dataclass(frozen=True)
class KernelProgram(Program):
    """A Program that knows the kernel it was made from; `source` is None for other Programs."""

    source: KernelSource | None = None


@dataclass(frozen=True, slots=True)
class LoweredKernel:
    """A kernel as a Program, with where its instructions come from."""

    program: KernelProgram
    source: KernelSource


def with_source(program: Program, source: KernelSource | None) -> KernelProgram:
    """The Program with its kernel."""
    columns = {field.name: getattr(program, field.name) for field in fields(Program)}
    return KernelProgram(**columns, source=source)
