"""What the rules look at: a profile, the programs that it ran, and what-if runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.occupancy import Occupancy, measure_occupancy
from neuron_profile.analysis.own_lines import OwnLine, callers_of_lines
from neuron_profile.analysis.source_frames import SourceLine
from neuron_profile.analysis.whatif.change import Change
from neuron_profile.analysis.whatif.executions import Executions, ProgramKey
from neuron_profile.analysis.whatif.kernel_lines import NO_LINE, kernel_lines
from neuron_profile.analysis.whatif.run import WhatIf
from neuron_tools.errors import NeuronToolsError
from neuron_tools.profile.reader import Profile
from neuron_tools.records.program import Program
from neuron_tools.records.simulation import Simulation
from neuron_tools.simulator import simulate

Mask = npt.NDArray[np.bool_]
Select = Callable[[Program], tuple[Mask, Mask]]


@dataclass(frozen=True)
class ProgramUse:
    """A program with how often it ran and its times."""

    key: ProgramKey
    program: Program
    count: int
    simulation: Simulation


@dataclass(frozen=True, slots=True)
class Hotspot:
    """Time of chosen rows, and the place that has most of it.

    Attributes:
        busy_ns: Sum of the durations of the chosen instructions and transfers, over all executions.
        place_ns: The part at `place`.
    """

    busy_ns: float
    place_ns: float
    place: Place


class Context:
    """One profile, seen by the rules. What several rules need is computed once."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    @cached_property
    def occupancy(self) -> Occupancy:
        """Whether host or device decides."""
        return measure_occupancy(self.profile)

    @cached_property
    def callers(self) -> Mapping[SourceLine, OwnLine]:
        """The user's line behind each line that time was spent at."""
        return callers_of_lines(self.profile)

    @cached_property
    def what_if(self) -> WhatIf | None:
        """What-if runs; None where the profile does not hold its programs."""
        try:
            what_if = WhatIf(self.profile)
            for key in what_if.executions.keys:
                what_if.executions.program(key)
        except NeuronToolsError:
            return None
        return what_if

    @property
    def executions(self) -> Executions | None:
        """What was executed."""
        return self.what_if.executions if self.what_if else None

    @cached_property
    def programs(self) -> tuple[ProgramUse, ...]:
        """The programs that ran."""
        executions = self.executions
        if executions is None:
            return ()
        uses = []
        for key in executions.keys:
            program = executions.program(key)
            count = len(executions.of_program(key))
            uses.append(ProgramUse(key, program, count, simulate(program, executions.core)))
        return tuple(uses)

    @cached_property
    def device_ns(self) -> float:
        """Device time: the sum of all executions."""
        return float(sum(use.count * use.simulation.duration_ps for use in self.programs)) / 1000

    def finding(
        self, rule: str, title: str, change: str, simulated: Change | None, **details: object
    ) -> Finding:
        """A finding whose gain is simulated.

        Args:
            simulated: What takes the cause away; None = the gain is not simulated.
            details: Further attributes of the finding.
        """
        if simulated is None or self.what_if is None:
            return Finding(rule, title, change, **details)  # type: ignore[arg-type]
        gain = self.what_if.gain(simulated)
        return Finding(
            rule, title, change, gain_ns=gain.total_gain_ns, device_gain_ns=gain.device_gain_ns,
            total_ns=gain.total_ns, what_if=simulated.text, **details,  # type: ignore[arg-type]
        )  # fmt: skip

    def hotspot(self, select: Select) -> Hotspot:
        """Where the chosen rows of all programs spend their time."""
        at = self.busy_places(select)
        if not at:
            return Hotspot(0.0, 0.0, Place())
        place = max(at, key=lambda key: (at[key], str(key)))
        return Hotspot(sum(at.values()), at[place], place)

    def busy_places(self, select: Select | None = None) -> dict[Place, float]:
        """Time in ns of the chosen rows (all, if None) of all executions, by the place they came from."""
        at: defaultdict[Place, float] = defaultdict(float)
        for use in self.programs:
            rows = select(use.program) if select is not None else _every(use.program)
            for (hlo, line), busy_ns in _busy_by_origin(use, *rows).items():
                for place, share in self._places(use, hlo, line):
                    at[place] += busy_ns * share
        return dict(at)

    def _places(self, use: ProgramUse, hlo: int, line: int) -> Iterator[tuple[Place, float]]:
        """Places of one HLO operation, or line of a kernel, with how many executions each has."""
        executions = self.executions
        assert executions is not None
        if use.key in executions.eager:
            for position in executions.of_program(use.key):
                origin = executions.origin(int(position))
                if origin is not None:
                    place = Place(origin.file, origin.line, "", origin.layer, origin.operation)
                    yield place, 1.0
            return
        program = use.program
        rows = program.hlo[hlo].framework if 0 <= hlo < len(program.hlo) else ()
        if not rows:
            yield Place(), float(use.count)
            return
        operation = program.framework[rows[0]]
        frame = operation.stack[0] if operation.stack else None
        lines = kernel_lines(program)
        if lines is not None and line != NO_LINE:
            yield (
                Place(*lines.places[line], "", operation.module_path, operation.name),
                float(use.count),
            )
            return
        yield (
            Place(
                frame.file if frame else "", frame.line if frame else 0, frame.function if frame else "",
                operation.module_path, operation.name,
            ),
            float(use.count),
        )  # fmt: skip


def _every(program: Program) -> tuple[Mask, Mask]:
    return np.ones(len(program.instructions), bool), np.ones(len(program.dmas), bool)


def _busy_by_origin(use: ProgramUse, instructions: Mask, dmas: Mask) -> dict[tuple[int, int], float]:
    """Nanoseconds that chosen rows take in one execution, by HLO operation and, in a kernel, its line."""
    times: defaultdict[tuple[int, int], float] = defaultdict(float)
    simulation, program = use.simulation, use.program
    lines = kernel_lines(program)
    of_rows, of_dmas = (lines.instruction, lines.dma) if lines is not None else (None, None)
    for rows, table, line, start, end in (
        (instructions, program.instructions, of_rows, simulation.start_ps, simulation.end_ps),
        (dmas, program.dmas, of_dmas, simulation.dma_start_ps, simulation.dma_end_ps),
    ):
        chosen = np.flatnonzero(rows)
        if len(chosen):
            busy_ns = (end[chosen] - start[chosen]) / 1000
            at_line = np.full(len(chosen), NO_LINE) if line is None else line[chosen]
            origins = np.stack([table["hlo"][chosen].astype(np.int64), at_line], axis=1)
            unique, inverse = np.unique(origins, axis=0, return_inverse=True)
            for origin, total in zip(unique.tolist(), np.bincount(inverse.ravel(), weights=busy_ns)):
                times[origin[0], origin[1]] += float(total)
    return times
