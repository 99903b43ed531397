"""Compiles, simulates and stores what a captured process runs: once per operator signature or graph."""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuron_tools.capture.compilation import Compilation
from neuron_tools.capture.definitions import DefinitionsWriter
from neuron_tools.capture.fusion import EagerFusion
from neuron_tools.device.native import CANNOT_FUSE
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.capture_log import NOT_COMPILED
from neuron_tools.records.executable import Executable, of_another_module, save, save_shared

if TYPE_CHECKING:
    from neuron_tools.compiler import hlo
    from neuron_tools.frontends.executables import SharedCode
    from neuron_tools.records.program import Program

FOLDER = "executables"
UNTIMED = (0, 0, CANNOT_FUSE)  # what did not compile: no executable, no duration
DEBUG_VARIABLE = "NEURON_TOOLS_DEBUG"  # set: print why something did not compile
NOT_NATIVE = 2  # bit of the record column `flags`: something in it has no native lowering


class ExecutableStore:
    """Turns modules into executables of one process's capture log.

    It is what the front ends call a provider (`frontends.executables`), and what the device asks when it
    meets a new operator signature. Calls may come from several threads; executables are numbered in the
    order in which they are first asked for.

    Attributes:
        on_executable: Called with each new executable before it first runs.
    """

    def __init__(
        self, directory: Path, core: NeuronCore, definitions: DefinitionsWriter, *, keep_compile_time: bool
    ) -> None:
        self._folder = directory / FOLDER
        self._folder.mkdir()
        self._core = core
        self._definitions = definitions
        self._keep_compile_time = keep_compile_time
        self._compilation = Compilation(core, self._warn_of_disk)
        self._lock = threading.RLock()
        self._graphs: dict[Hashable, Executable | None] = {}
        self._shared: dict[Hashable, Executable] = {}
        self._operations: dict[Hashable, tuple[int, int, int]] = {}
        self._fusion = EagerFusion(
            lambda module_factory, name: self._make(module_factory, name, "fused"),
            round(core.launch_overhead_ns),
        )
        self._count = 0
        self.on_executable: list[Callable[[Executable], None]] = []

    def for_operation(self, name: str, arguments: tuple[Any, ...]) -> tuple[int, int, int]:
        """Executable number, duration in ns and flags of an eager operation's signature."""
        from neuron_tools.frontends.torch_eager.canonical import signature_key

        key = signature_key(name, arguments)
        with self._lock:
            if key not in self._operations:
                self._operations[key] = self._operation(key, name, arguments)
            return self._operations[key]

    def for_fusion(self, waiting: list[Any]) -> tuple[int, int, int, int]:
        """The same for operations that wait together, and how many of the first it is (`FusionCallback`)."""
        with self._lock:
            return self._fusion.cost_of(waiting)

    def _operation(self, key: Hashable, name: str, arguments: tuple[Any, ...]) -> tuple[int, int, int]:
        executable = self._guarded(lambda: self._compile_operation(key, name, arguments), name)
        if executable is None:
            return UNTIMED
        self._fusion.add(name, arguments, executable)
        flags = self._fusion.flags(name, executable.program)
        return executable.number, executable.duration_ns, flags | _flags(executable)

    def _compile_operation(self, key: Hashable, name: str, arguments: tuple[Any, ...]) -> Executable:
        def make() -> Executable:
            from neuron_tools.frontends.torch_eager.operation import lower_operation

            program = self._compilation.program(lower_operation(name, arguments), whole_graph=False)
            return self._timed(program, name, "eager")

        started_ns = time.perf_counter_ns()
        return self._added(self._compilation.operation(name, key, make), started_ns)

    def executable_for(
        self,
        module_factory: Callable[[], hlo.Module],
        key: Hashable,
        name: str,
        shared: SharedCode | None = None,
    ) -> tuple[int, int]:
        """Executable number and duration in ns of a compiled graph; made once per key, its code once."""
        with self._lock:
            if key not in self._graphs:
                self._graphs[key] = self._graph(module_factory, name, shared)
            executable = self._graphs[key]
        return (executable.number, executable.duration_ns) if executable else UNTIMED[:2]

    def executable_of(self, program: Program, key: Hashable, *, eager: bool = False) -> tuple[int, int]:
        """Executable number and duration in ns of a Program that is compiled already; made once per key."""
        kind = "eager" if eager else "graph"
        with self._lock:
            if key not in self._graphs:
                self._graphs[key] = self._guarded(
                    lambda: self._added(self._timed(program, program.name, kind), time.perf_counter_ns()),
                    program.name,
                )
            executable = self._graphs[key]
        return (executable.number, executable.duration_ns) if executable else UNTIMED[:2]

    def executables_of(
        self, programs: Sequence[Program], key: Hashable, *, eager: bool = False
    ) -> tuple[tuple[int, int], ...]:
        """The same for Programs of physical cores that run together: for each logical core that they take."""
        from neuron_tools.records.program import joined_cores

        size = self._core.logical_core_size
        together = [joined_cores(programs[first : first + size]) for first in range(0, len(programs), size)]
        return tuple(
            self.executable_of(program, (key, rank), eager=eager) for rank, program in enumerate(together)
        )

    def executables_together(self, programs: Sequence[Program], key: Hashable) -> list[tuple[int, int]]:
        """Executable numbers and durations in ns of Programs that share the memory of their chips."""
        from neuron_tools.hardware import device_of
        from neuron_tools.simulator.multi_core import simulate_cores

        with self._lock:
            if (key, 0) not in self._graphs:
                started_ns = time.perf_counter_ns()
                simulations = simulate_cores(programs, device_of(self._core))
                for number, (program, simulation) in enumerate(zip(programs, simulations)):
                    made = Executable(0, program.name, "graph", program, simulation)
                    self._graphs[key, number] = self._added(made, started_ns)
            together = [self._graphs[key, number] for number in range(len(programs))]
        return [(each.number, each.duration_ns) if each else UNTIMED[:2] for each in together]

    def _graph(
        self, module_factory: Callable[[], hlo.Module], name: str, shared: SharedCode | None
    ) -> Executable | None:
        """Compile a graph, or take the code that another module's executable of it has."""
        first = self._shared.get(shared.key) if shared else None
        if shared and first and (moved := self._moved(first, shared)):
            return moved
        made = self._make(module_factory, name, "graph")
        if shared and made:
            self._shared.setdefault(shared.key, made)
        return made

    def _moved(self, first: Executable, shared: SharedCode) -> Executable | None:
        """The executable of the module that runs the code now; None where its operations are others."""
        started_ns = time.perf_counter_ns()
        moved = of_another_module(first, tuple(shared.framework()))
        if moved is None:
            return None
        with self._lock:
            return self._added(moved, started_ns, code=self._path(first))

    def _make(self, module_factory: Callable[[], hlo.Module], name: str, kind: str) -> Executable | None:
        return self._guarded(lambda: self._compile(module_factory, name, kind), name)

    def _guarded(self, make: Callable[[], Executable], name: str) -> Executable | None:
        """Compile, simulate and store; None, with a warning in the profile, where that fails.

        The user's program computes its values elsewhere and must not stop because its time is not known.
        """
        try:
            return make()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".split("\n")[0]
            message = f"{name} could not be compiled and takes no device time ({reason})."
            self._definitions.write("warning", message=message, category=NOT_COMPILED)
            if os.environ.get(DEBUG_VARIABLE):
                traceback.print_exc()
            return None

    def _compile(self, module_factory: Callable[[], hlo.Module], name: str, kind: str) -> Executable:
        with self._lock:
            started_ns = time.perf_counter_ns()
            program = self._compilation.program(module_factory(), whole_graph=kind == "graph")
            return self._added(self._timed(program, name, kind), started_ns)

    def _timed(self, program: Program, name: str, kind: str) -> Executable:
        """The Program with its simulated times, without a number yet."""
        from neuron_tools.simulator.simulation import simulate

        return Executable(0, name, kind, program, simulate(program, self._core))

    def _added(self, made: Executable, started_ns: int, code: Path | None = None) -> Executable:
        """The executable with its number, stored: without its code where the file `code` has that."""
        elapsed_ns = time.perf_counter_ns() - started_ns if self._keep_compile_time else 0
        self._count += 1
        executable = replace(made, number=self._count, compile_time_ns=elapsed_ns)
        self._store(executable, code)
        for tell in self.on_executable:
            tell(executable)
        return executable

    def _warn_of_disk(self, message: str) -> None:
        self._definitions.write("warning", message=message, category="disk")

    def _path(self, executable: Executable) -> Path:
        return self._folder / f"{executable.number:06d}.npz"

    def _store(self, executable: Executable, code: Path | None) -> None:
        path = self._path(executable)
        try:
            if code is None:
                save(executable, path)
            else:
                save_shared(executable, path, code)
        except OSError as error:
            self._warn_of_disk(f"{path.name}: {error.strerror}")
            return
        self._definitions.write("executable", id=executable.number, file=f"{FOLDER}/{path.name}")


def _flags(executable: Executable) -> int:
    return NOT_NATIVE if executable.program.warnings else 0
