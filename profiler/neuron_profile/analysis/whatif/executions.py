"""What a profile executed, and the programs that ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np

from neuron_profile.analysis.whatif.kernel_lines import with_kernel_lines
from neuron_tools import hardware
from neuron_tools.arrays import Ints
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen
from neuron_tools.hardware import NeuronCore
from neuron_tools.neff.kept_programs import load_program
from neuron_tools.profile.reader import Profile
from neuron_tools.records.program import Program

ProgramKey = tuple[int, int]  # process_idx, executable_idx

_EXECUTIONS = """
SELECT coalesce(process_idx, 0) AS process, executable_idx AS executable, coalesce(pcore_idx, 0) AS core,
    execution_start_ts AS start_ns, execution_end_ts AS end_ns
FROM ExecutionInfo WHERE executable_idx IS NOT NULL AND coalesce(pcore_idx, 0) % ? = 0
ORDER BY process, start_ns, core
"""
"""Both physical cores of a logical one run one execution, which the first of them stands for."""
_EAGER = """
SELECT coalesce(process_idx, 0) AS process, executable_idx AS executable FROM Executable
WHERE kind IN ('eager', 'fused')
"""
_ORIGINS = """
SELECT coalesce(process_idx, 0) AS process, coalesce(pcore_idx, 0) AS core, start_ts AS start_ns, id,
    coalesce(framework_name, '') AS operation, coalesce(layer, '') AS layer,
    coalesce(source_file, '') AS file, coalesce(source_line, 0) AS line
FROM FrameworkInstruction ORDER BY process, core, start_ns
"""


@frozen
class Origin:
    """Where a framework operation of an eager execution came from."""

    operation: str
    layer: str
    file: str
    line: int


Origins = tuple[Origin, ...]
"""Those of all framework operations of an execution, in the order of its program's table."""


@dataclass
class Executions:
    """All executions of a profile in the order of their process and start.

    Attributes:
        core: The NeuronCore that was simulated.
        process, executable, core_index: (executions,) int64.
        start_ns, end_ns: (executions,) int64 device times.
        eager: Programs of operators run one by one, or fused; where these came from belongs to the execution.
    """

    profile: Profile
    core: NeuronCore
    process: Ints
    executable: Ints
    core_index: Ints
    start_ns: Ints
    end_ns: Ints
    eager: frozenset[ProgramKey]
    _programs: dict[ProgramKey, Program] = field(default_factory=dict)
    _origins: list[Origins] | None = None

    @classmethod
    def of(cls, profile: Profile) -> Executions:
        """The executions of a profile.

        Raises:
            NeuronToolsError: It holds none that can be simulated again.
        """
        core = _core(profile.metadata)
        rows = profile.query(_EXECUTIONS, [core.logical_core_size])
        if not rows.num_rows:
            raise NeuronToolsError(
                f"{profile.path} has no executions that can be simulated again: what-if runs need a capture."
            )
        columns = {name: rows[name].to_numpy().astype(np.int64) for name in rows.column_names}
        eager = {(row["process"], row["executable"]) for row in profile.query(_EAGER).to_pylist()}
        return cls(
            profile, core, columns["process"], columns["executable"], columns["core"],
            columns["start_ns"], columns["end_ns"], frozenset(eager),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.process)

    @property
    def keys(self) -> list[ProgramKey]:
        """The distinct programs, in order."""
        pairs = np.unique(np.stack([self.process, self.executable], axis=1), axis=0)
        return [(int(process), int(executable)) for process, executable in pairs]

    def of_program(self, key: ProgramKey) -> Ints:
        """Positions of the executions of one program."""
        return np.flatnonzero((self.process == key[0]) & (self.executable == key[1]))

    def program(self, key: ProgramKey) -> Program:
        """The program, read from the profile once.

        Raises:
            NeuronToolsError: The profile does not hold it.
        """
        if key not in self._programs:
            program = load_program(self.profile.path, *key)
            self._programs[key] = self._with_lines(key, program) if self.has_kernels else program
        return self._programs[key]

    def _with_lines(self, key: ProgramKey, program: Program) -> Program:
        """The program with the lines that its first execution's rows name."""
        positions = self.of_program(key)
        if not len(positions):
            return program
        first = int(positions[0])
        window = int(self.start_ns[first]), int(self.end_ns[first])
        return with_kernel_lines(self.profile, program, key[0], int(self.core_index[first]), window)

    @cached_property
    def has_kernels(self) -> bool:
        """Whether any instruction came from an NKI kernel."""
        return bool(self.profile.query("SELECT 1 FROM KernelInstructions LIMIT 1").num_rows)

    def origins(self, execution: int) -> Origins:
        """Where an execution's framework operations came from, in the order of its program's."""
        if self._origins is None:
            self._origins = self._find_origins()
        return self._origins[execution]

    def _find_origins(self) -> list[Origins]:
        rows = self.profile.query(_ORIGINS).to_pylist()
        by_core: dict[tuple[int, int], list[dict[str, Any]]] = {}
        for row in rows:
            by_core.setdefault((row["process"], row["core"]), []).append(row)
        starts = {key: np.array([row["start_ns"] for row in group]) for key, group in by_core.items()}
        found: list[Origins] = []
        for index in range(len(self)):
            key = (int(self.process[index]), int(self.core_index[index]))
            group = by_core.get(key, [])
            window = (self.start_ns[index], self.end_ns[index])
            first, last = np.searchsorted(starts[key], window) if group else (0, 0)
            rows = sorted(group[int(first) : int(last)], key=itemgetter("id"))
            found.append(tuple(map(_origin, rows)))
        return found


def _origin(row: Mapping[str, Any]) -> Origin:
    return Origin(row["operation"], row["layer"], row["file"], row["line"])


def _core(metadata: Mapping[str, Any]) -> NeuronCore:
    core = hardware.get(str(metadata.get("target") or "trn2"), lnc=int(metadata.get("lnc") or 1))
    return hardware.apply_settings(core, [str(setting) for setting in metadata.get("settings") or ()])
