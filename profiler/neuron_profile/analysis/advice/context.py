"""What the rules look at: a profile, the programs that it ran, and what-if runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.host_activity import HostIdle, find_host_idle
from neuron_profile.analysis.occupancy import Occupancy, measure_occupancy
from neuron_profile.analysis.own_lines import OwnLine, callers_of_lines
from neuron_profile.analysis.source_frames import SourceLine, SourceTexts
from neuron_profile.analysis.whatif.change import Change, framework_shares
from neuron_profile.analysis.whatif.executions import Executions, Origin, Origins, ProgramKey
from neuron_profile.analysis.whatif.kernel_lines import NO_LINE, kernel_lines
from neuron_profile.analysis.whatif.run import WhatIf
from neuron_tools.arrays import Mask
from neuron_tools.capture.tables.origin import layer_path
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile
from neuron_tools.records.program import FrameworkOperation, Program
from neuron_tools.records.simulation import Simulation
from neuron_tools.simulator import simulate

Times = npt.NDArray[np.int64]
Select = Callable[[Program], tuple[Mask, Mask]]


@dataclass(frozen=True)
class ProgramUse:
    """A program with how often it ran and its times."""

    key: ProgramKey
    program: Program
    count: int
    simulation: Simulation


@frozen
class Hotspot:
    """Time of chosen rows, and the place that has most of it.

    Attributes:
        busy_ns: Time in which the chosen instructions and transfers ran, over all executions: the union of
            those of each engine, and of all transfers.
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
    def host_idle(self) -> HostIdle | None:
        """What the host did while the device was idle; None where it was not sampled."""
        return find_host_idle(self.profile)

    @cached_property
    def callers(self) -> Mapping[SourceLine, OwnLine]:
        """The user's line behind each line that time was spent at."""
        return callers_of_lines(self.profile)

    @cached_property
    def own_kernel_lines(self) -> frozenset[SourceLine]:
        """Lines of the NKI kernels that the user wrote; those of a library are reached through others."""
        lines = (kernel_lines(use.program) for use in self.programs)
        places = {SourceLine(*place) for each in lines if each is not None for place in each.places}
        callers = self.callers
        return frozenset(line for line in places if line not in callers or callers[line].place == line)

    @cached_property
    def texts(self) -> SourceTexts:
        """The source texts that the profile keeps."""
        return SourceTexts(self.profile)

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

    @property
    def start_ns(self) -> int:
        """What the time of the program counts from: the start of the range that is looked at, else 0."""
        return self.profile.range_ns[0] if self.profile.range_ns is not None else 0

    @cached_property
    def device_ns(self) -> float:
        """Device time: the sum of all executions."""
        return float(sum(use.count * use.simulation.duration_ps for use in self.programs)) / 1000

    def finding(
        self, rule: str, title: str, change: str, simulated: Change | None, **details: Any
    ) -> Finding:
        """A finding whose gain is simulated.

        Args:
            simulated: What takes the cause away; None = the gain is not simulated.
            details: Further attributes of the finding.
        """
        if simulated is None or self.what_if is None:
            return Finding(rule, title, change, **details)
        gain = self.what_if.gain(simulated)
        return Finding(
            rule, title, change, gain_ns=gain.total_gain_ns, device_gain_ns=gain.device_gain_ns,
            total_ns=gain.total_ns, what_if=simulated.text, **details,
        )  # fmt: skip

    def hotspot(self, select: Select) -> Hotspot:
        """Where the chosen rows of all programs spend their time."""
        at = self.busy_places(select)
        if not at:
            return Hotspot(0.0, 0.0, Place())
        place = max(at, key=lambda key: (at[key], str(key)))
        return Hotspot(sum(at.values()), at[place], place)

    def large_hotspot(self, select: Select, share: float) -> Hotspot | None:
        """The hotspot of rows that take at least this share of the device time; None where they take less."""
        hot = self.hotspot(select)
        return hot if hot.busy_ns and hot.busy_ns >= share * self.device_ns else None

    def busy_places(self, select: Select | None = None) -> dict[Place, float]:
        """Time in ns of the chosen rows (all, if None) of all executions, by the place they came from.

        Rows of one engine that run at the same time, as in a pipeline, count once: the time is charged to the
        one that began first. So it never passes the engine's active time.
        """
        at: defaultdict[Place, float] = defaultdict(float)
        for use in self.programs:
            for (hlo, line), busy_ns in _busy_by_origin(use, *(select or _every)(use.program)).items():
                for place, executions in self._places(use, hlo, line):
                    at[place] += busy_ns * executions
        return dict(at)

    def _places(self, use: ProgramUse, hlo: int, line: int) -> Iterator[tuple[Place, float]]:
        """Places of one HLO operation, or line of a kernel, with how many executions each has.

        Of what several operations were fused into, each has its share.
        """
        executions, program = self.executions, use.program
        assert executions is not None
        if not 0 <= hlo < len(program.hlo):
            yield Place(), float(use.count)
            return
        at_line = None
        lines = kernel_lines(program)
        if lines is not None and line != NO_LINE:
            at_line = lines.places[line]
        for origins, count in self._origins(executions, use).items():
            operations = framework_shares(program, program.hlo[hlo], origins)
            for operation, share in operations:
                yield _place(operation, at_line), share * count
            if not operations:
                yield Place(), float(count)

    def _origins(self, executions: Executions, use: ProgramUse) -> Mapping[Origins, int]:
        """How often a program's operations came from where; one nameless origin where it says so itself.

        A graph of library modules alone does not: its lines are those that called it.
        """
        if use.key not in executions.eager and all(each.stack for each in use.program.framework):
            return {(): use.count}
        return Counter(executions.origins(int(position)) for position in executions.of_program(use.key))


def _every(program: Program) -> tuple[Mask, Mask]:
    return np.ones(len(program.instructions), bool), np.ones(len(program.dmas), bool)


def _place(operation: FrameworkOperation | Origin, kernel_line: tuple[str, int] | None) -> Place:
    if isinstance(operation, Origin):
        file, line, function = operation.file, operation.line, ""
        module, name = operation.layer, operation.operation
    else:
        frame = operation.stack[0] if operation.stack else None
        file, line, function = (frame.file, frame.line, frame.function) if frame else ("", 0, "")
        module, name = layer_path(operation.module_path, operation.stack), operation.name
    if kernel_line is not None:
        (file, line), function = kernel_line, ""
    return Place(file, line, function, module, name)


def _busy_by_origin(use: ProgramUse, instructions: Mask, dmas: Mask) -> dict[tuple[int, int], float]:
    """Nanoseconds that chosen rows take in one execution, by HLO operation and, in a kernel, its line."""
    times: defaultdict[tuple[int, int], float] = defaultdict(float)
    simulation, program = use.simulation, use.program
    lines = kernel_lines(program)
    of_rows, of_dmas = (lines.instruction, lines.dma) if lines is not None else (None, None)
    engine = program.instructions["engine"].astype(np.int64)
    for rows, table, group, line, start, end in (
        (instructions, program.instructions, engine, of_rows, simulation.start_ps, simulation.end_ps),
        (dmas, program.dmas, None, of_dmas, simulation.dma_start_ps, simulation.dma_end_ps),
    ):
        chosen = np.flatnonzero(rows)
        if len(chosen):
            groups = np.zeros(len(chosen), np.int64) if group is None else group[chosen]
            busy_ns = _first_come(start[chosen], end[chosen], groups) / 1000
            at_line = np.full(len(chosen), NO_LINE) if line is None else line[chosen]
            origins = np.stack([table["hlo"][chosen].astype(np.int64), at_line], axis=1)
            unique, inverse = np.unique(origins, axis=0, return_inverse=True)
            for origin, total in zip(unique.tolist(), np.bincount(inverse.ravel(), weights=busy_ns)):
                times[origin[0], origin[1]] += float(total)
    return times


def _first_come(start: Times, end: Times, group: Times) -> Times:
    """Length of each span without what earlier ones of its group cover, so that they add up to the union.

    O(n log n) in the spans.
    """
    length = np.zeros(len(start), np.int64)
    for number in np.unique(group):
        rows = np.flatnonzero(group == number)
        rows = rows[np.lexsort((end[rows], start[rows]))]
        covered = np.concatenate([start[rows[:1]], np.maximum.accumulate(end[rows])[:-1]])
        length[rows] = np.maximum(0, end[rows] - np.maximum(start[rows], covered))
    return length
