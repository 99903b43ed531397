"""Decides which eager operations that wait for the device together run as one execution."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from neuron_tools.device.native import BEGINS_FUSION, CANNOT_FUSE
from neuron_tools.frozen import frozen
from neuron_tools.records.executable import Executable
from neuron_tools.records.program import Flag, Opcode, Program

if TYPE_CHECKING:
    from neuron_tools.compiler import hlo
    from neuron_tools.frontends.torch_eager.fused import WaitingOperation

MOST_PROGRAMS = 256
"""Fused programs that a process makes: what meets in ever new ways must not be compiled for ever."""
MOST_INSTRUCTIONS = 60_000
"""Of operations that are compiled together: above it launching them is nothing beside running them."""
ALONE = (0, 0, 0, 1)

Make = Callable[[Callable[[], "hlo.Module"], str], "Executable | None"]


@frozen
class Known:
    """An operator signature and what it was compiled to."""

    name: str
    arguments: tuple[Any, ...]
    executable: Executable


class EagerFusion:
    """Fused executables of a process, one for each sequence of operations and what is needed of it later.

    Args:
        make: Compiles and simulates a module of a name; None where that fails.
        launch_overhead_ns: What the device adds to each execution.
    """

    def __init__(self, make: Make, launch_overhead_ns: int) -> None:
        self._make = make
        self._launch_overhead_ns = launch_overhead_ns
        self._known: dict[int, Known] = {}
        self._fused: dict[Hashable, Executable | None] = {}
        self._programs = 0

    def add(self, name: str, arguments: tuple[Any, ...], executable: Executable) -> None:
        """Make an operation known."""
        self._known.setdefault(executable.number, Known(name, arguments, executable))

    def flags(self, name: str, program: Program) -> int:
        """Whether an operation may join others, or only others it."""
        from neuron_tools.frontends.torch_eager.schema import can_fuse

        if program.warnings or len(program.instructions) > MOST_INSTRUCTIONS or not can_fuse(name):
            return CANNOT_FUSE
        return BEGINS_FUSION if _has_product(program) else 0

    def cost_of(self, waiting: Sequence[tuple[int, Any, Any]]) -> tuple[int, int, int, int]:
        """What the first of several waiting operations cost together.

        Args:
            waiting: As `neuron_tools.device.native.FusionCallback` takes them.

        Returns:
            Executable number, duration in ns, record flags, how many of them it is; `ALONE` where the first
            one is better off by itself.
        """
        operations = self._understand(waiting)
        while len(operations) > 1:
            executable, fitting = self._executable(operations)
            if executable is not None:
                alone_ns = self._duration_alone_ns(waiting[: len(operations)])
                if executable.duration_ns + self._launch_overhead_ns > alone_ns:
                    return ALONE
                return executable.number, executable.duration_ns, 0, len(operations)
            operations = first_of(operations, min(fitting, len(operations) - 1))
        return ALONE

    def _understand(self, waiting: Sequence[tuple[int, Any, Any]]) -> list[WaitingOperation]:
        from neuron_tools.frontends.torch_eager.fused import WaitingOperation, result_of

        operations: list[WaitingOperation] = []
        instructions = 0
        for number, uses, results in waiting:
            known = self._known.get(number)
            if known is None:
                break
            instructions += len(known.executable.program.instructions)
            if instructions > MOST_INSTRUCTIONS:
                break
            made = tuple(result_of(*result) for result in results)
            operations.append(WaitingOperation(known.name, known.arguments, tuple(uses), made))
        return first_of(operations, len(operations), used_later=_buffers(waiting[len(operations) :]))

    def _executable(self, operations: list[WaitingOperation]) -> tuple[Executable | None, int]:
        """The executable, or how many of the operations may be put together instead."""
        from neuron_tools.frontends.torch_eager.fused import NotFusable, lower_fused

        key = tuple((each.name, repr(each.arguments), each.uses, each.results) for each in operations)
        if key in self._fused:
            return self._fused[key], 0
        if self._programs >= MOST_PROGRAMS:
            return None, 0
        try:
            name = fused_name([each.name for each in operations])
            module = lower_fused(operations, name)
        except NotFusable as refusal:
            return None, refusal.position
        self._programs += 1
        executable = self._fused[key] = self._make(lambda: module, name)
        return executable, 0

    def _duration_alone_ns(self, waiting: Sequence[tuple[int, Any, Any]]) -> int:
        durations = [self._known[number].executable.duration_ns for number, _, _ in waiting]
        return sum(durations) + len(durations) * self._launch_overhead_ns


def first_of(
    operations: Sequence[WaitingOperation], count: int, used_later: frozenset[int] = frozenset()
) -> list[WaitingOperation]:
    """The first `count` operations; what the others, or `used_later`, read of them is needed."""
    later = used_later | {buffer for each in operations[count:] for buffer, _ in each.uses}
    return [
        replace(
            each,
            results=tuple(
                replace(result, needed=result.needed or result.buffer in later) for result in each.results
            ),
        )
        for each in operations[:count]
    ]


def fused_name(names: Sequence[str]) -> str:
    """A name that tells the operators, repeated ones once: "mul + add x3"."""
    parts: list[list[Any]] = []
    for name in names:
        short = name.split("::")[-1].split(".")[0]
        if parts and parts[-1][0] == short:
            parts[-1][1] += 1
        else:
            parts.append([short, 1])
    return "fused: " + " + ".join(name if count == 1 else f"{name} x{count}" for name, count in parts)


def _buffers(waiting: Sequence[tuple[int, Any, Any]]) -> frozenset[int]:
    return frozenset(buffer for _, uses, _ in waiting for buffer, _ in uses)


def _has_product(program: Program) -> bool:
    """Whether the Tensor engine multiplies matrices for it, as opposed to turning and adding up."""
    rows = program.instructions
    products = (rows["opcode"] == Opcode.MATMUL) & (rows["flags"] & Flag.TRANSPOSE == 0)
    owners = {program.hlo[row].opcode for row in set(rows["hlo"][products].tolist()) if row >= 0}
    return bool(owners & _PRODUCTS)


_PRODUCTS = frozenset({"dot", "dot_general", "convolution", "attention", "custom_call"})
