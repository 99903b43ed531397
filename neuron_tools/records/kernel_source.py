"""Where each instruction of a Program comes from in its kernels: call stacks and loop variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Int32s
from neuron_tools.frozen import frozen
from neuron_tools.records.program import Frame, Program


@frozen
class Transformation:
    """What one pass of the compiler changed of one line of a kernel.

    Attributes:
        name: The pass, e.g. "redundant".
        stack: Row of the kernel's stacks.
        calls: Instructions and transfers that fell away; negative where they were put in.
        hbm_bytes: Bytes of HBM that are not moved any more; negative where more are.
        busy_ns: Time of engines that they took; negative where more is taken.
    """

    name: str
    stack: int
    calls: int
    hbm_bytes: int
    busy_ns: int


@frozen
class KernelLaunch:
    """A call of a kernel without its data: enough to trace the kernel again, also after it was edited.

    Attributes:
        module, function: Module and qualified name of the kernel's function.
        file, line: Where it is defined.
        arguments: Positional and keyword arguments as JSON; arrays as shape and type.
        grid: Extent of each axis of the launch grid.
        cores: Physical cores that run instances side by side.
    """

    module: str
    function: str
    file: str
    line: int
    arguments: str
    grid: tuple[int, ...] = ()
    cores: int = 1


@frozen
class KernelSource:
    """The kernel behind a Program, or those inside it; rows are those of its instruction table.

    Attributes:
        names: The kernel of each kind of call.
        stacks: Call stacks inside the kernel, innermost frame first.
        loops: (variable, file, line) of each loop; "_" where the variable has no name.
        calls: Name of each kind of call, e.g. "nc_matmul".
        stack: (instructions,) row of `stacks`, -1 unknown.
        iteration: (instructions,) row of `iterations`, -1 outside loops.
        call: (instructions,) number of the call that it is a part of, -1 for none.
        call_kind: (calls made,) row of `calls`.
        iterations: (iterations, 3): enclosing iteration or -1, row of `loops`, value of the variable.
        labels: Names that the kernel itself gave to calls (`name=`).
        call_label: (calls made,) row of `labels`, -1 for a call without a name; empty where none has one.
        transformations: What the compiler changed of what is written.
        launches: The calls that it was made from, those that can be made again.
    """

    names: tuple[str, ...]
    stacks: tuple[tuple[Frame, ...], ...]
    loops: tuple[tuple[str, str, int], ...]
    calls: tuple[str, ...]
    stack: Int32s
    iteration: Int32s
    call: Int32s
    call_kind: Int32s
    iterations: Int32s
    labels: tuple[str, ...] = ()
    call_label: Int32s = field(default_factory=lambda: np.zeros(0, np.int32))
    transformations: tuple[Transformation, ...] = ()
    launches: tuple[KernelLaunch, ...] = ()

    def call_names(self) -> list[str]:
        """Name of each call: the kernel's own for it, or the instruction's."""
        names = [self.calls[kind] for kind in self.call_kind.tolist()]
        for call in np.flatnonzero(self.call_label >= 0).tolist():
            names[call] = self.labels[self.call_label[call]]
        return names


@dataclass(frozen=True)
class KernelProgram(Program):
    """A Program that knows the kernel it was made from; `source` is None for other Programs."""

    source: KernelSource | None = None


@frozen
class LoweredKernel:
    """A kernel as a Program, with where its instructions come from."""

    program: KernelProgram
    source: KernelSource


def with_source(program: Program, source: KernelSource | None) -> KernelProgram:
    """The Program with its kernel."""
    columns = {field.name: getattr(program, field.name) for field in fields(Program)}
    return KernelProgram(**columns, source=source)


def with_kernels(program: Program, sources: Mapping[str, KernelSource]) -> Program:
    """A compiled Program with the sources of the kernels that its custom calls run.

    Args:
        program: Its HLO operations name the kernels (`HloOperation.kernel`).
        sources: By that key.
    """
    joined = _Joined(len(program.instructions))
    for row, operation in enumerate(program.hlo):
        source = sources.get(operation.kernel)
        if source is not None:
            joined.add(np.flatnonzero(program.instructions["hlo"] == row), source)
    return with_source(program, joined.source()) if joined.parts else program


class _Joined:
    """The sources of several kernels in one Program, put together."""

    def __init__(self, instructions: int) -> None:
        self.parts: list[tuple[npt.NDArray[Any], KernelSource]] = []
        self._instructions = instructions

    def add(self, rows: npt.NDArray[Any], source: KernelSource) -> None:
        """Instructions `rows` are those of `source`, in order."""
        self.parts.append((rows, source))

    def source(self) -> KernelSource:
        """All in one: stacks, loops, calls and iterations follow one another."""
        columns = {name: np.full(self._instructions, -1, np.int32) for name in ("stack", "iteration", "call")}
        shifts = dict.fromkeys(("stack", "iteration", "call", "loop", "kind", "label"), 0)
        iterations, kinds, labels = [], [], []
        changes: list[Transformation] = []
        for rows, part in self.parts:
            for name, column in columns.items():
                own = getattr(part, name)
                column[rows] = np.where(own >= 0, own + shifts[name], -1)
            moved = part.iterations.copy().reshape(-1, 3)
            moved[:, 0] = np.where(moved[:, 0] >= 0, moved[:, 0] + shifts["iteration"], -1)
            moved[:, 1] += shifts["loop"]
            iterations.append(moved)
            kinds.append(part.call_kind + np.int32(shifts["kind"]))
            changes += [replace(each, stack=each.stack + shifts["stack"]) for each in part.transformations]
            label = part.call_label if len(part.call_label) else np.full(len(part.call_kind), -1, np.int32)
            labels.append(np.where(label >= 0, label + shifts["label"], -1))
            shifts["label"] += len(part.labels)
            shifts["stack"] += len(part.stacks)
            shifts["iteration"] += len(moved)
            shifts["call"] += len(part.call_kind)
            shifts["loop"] += len(part.loops)
            shifts["kind"] += len(part.calls)
        return KernelSource(
            names=tuple(name for _, part in self.parts for name in part.names),
            stacks=tuple(stack for _, part in self.parts for stack in part.stacks),
            loops=tuple(loop for _, part in self.parts for loop in part.loops),
            calls=tuple(call for _, part in self.parts for call in part.calls),
            stack=columns["stack"],
            iteration=columns["iteration"],
            call=columns["call"],
            call_kind=np.concatenate(kinds).astype(np.int32),
            iterations=np.concatenate(iterations),
            labels=tuple(label for _, part in self.parts for label in part.labels),
            call_label=np.concatenate(labels).astype(np.int32),
            transformations=tuple(changes),
            launches=tuple(launch for _, part in self.parts for launch in part.launches),
        )
