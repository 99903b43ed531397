"""Programs of kernel calls, made once per signature, and the values of every call."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from neuron_tools.frontends.executables import ExecutableProvider
from neuron_tools.frontends.nki.ready import program_key
from neuron_tools.frontends.nki.signature import signature
from neuron_tools.nki.kernel import Kernel
from neuron_tools.nki.lowering import lower
from neuron_tools.nki.run import Run
from neuron_tools.nki.tracer import Recording
from neuron_tools.records.kernel_source import KernelProgram


class KernelPrograms:
    """Computes calls, and has their Programs timed.

    Args:
        provider: Times Programs and numbers the executables.
    """

    def __init__(self, provider: ExecutableProvider) -> None:
        self._provider = provider
        self._known: dict[Hashable, tuple[tuple[int, int], ...]] = {}
        self._functions: list[Any] = []  # kept, so that the ids in the keys stay theirs

    def run(
        self, kernel: Kernel, arguments: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> tuple[Any, tuple[tuple[int, int], ...]]:
        """Outputs of a call, and (executable number, duration in ns) for each logical core.

        Raises:
            NkiError: The kernel breaks a rule.
        """
        key = signature(kernel, arguments, keywords)
        known = self._known.get(key)
        if known is not None:
            return kernel.run(*arguments, recording=Recording.NOTHING, **keywords).outputs, known
        done = kernel.run(*arguments, **keywords)
        programs = programs_of(kernel, done)
        executables = self._provider.executables_of(programs, (key, *map(_digest, programs)))
        if not any(trace.data_dependent for trace in done.traces):
            self._functions.append(kernel.func)
            self._known[key] = executables
        return done.outputs, executables

    def of_ranks(self, kernel: Kernel, runs: Sequence[Run]) -> list[tuple[int, int]]:
        """(Executable number, duration in ns) for each logical core of one rank after another.

        Args:
            kernel: What the ranks ran.
            runs: Of each rank, with all that was recorded.
        """
        made = [programs_of(kernel, run) for run in runs]
        return [core for programs in made
                for core in self._provider.executables_of(programs, program_key(programs))]  # fmt: skip


def programs_of(kernel: Kernel, done: Run) -> list[KernelProgram]:
    """The Program of each physical core of a recorded run."""
    return [lower(trace, kernel.name).program for trace in done.traces]


def _digest(program: KernelProgram) -> int:
    """Tells apart the Programs of a kernel whose course depends on its data."""
    return hash((program.instructions.tobytes(), program.dmas.tobytes()))
