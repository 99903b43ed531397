"""Runs a change over all that a profile executed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from neuron_profile.analysis.whatif.change import Change, Variant, of_both_cores
from neuron_profile.analysis.whatif.executions import Executions, Origins, ProgramKey
from neuron_profile.analysis.whatif.replay import Replay, Spans, Waits
from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile
from neuron_tools.simulator import simulate
from neuron_tools.simulator.cost_scale import CostScale


@frozen
class Gain:
    """What a change does.

    Attributes:
        change: The change as text.
        device_ns, device_after_ns: Sum of the execution times, before and after.
        total_ns, total_after_ns: Time of the whole program, host included.
    """

    change: str
    device_ns: int
    device_after_ns: int
    total_ns: int
    total_after_ns: int

    @property
    def device_gain_ns(self) -> int:
        """Device time saved; negative where it takes longer."""
        return self.device_ns - self.device_after_ns

    @property
    def total_gain_ns(self) -> int:
        """Time of the program saved."""
        return self.total_ns - self.total_after_ns

    @property
    def total_gain(self) -> float:
        """Saved part of the program's time."""
        return self.total_gain_ns / self.total_ns if self.total_ns else 0.0


@dataclass
class WhatIf:
    """Simulates changes of one profile; programs are read and base times computed once."""

    profile: Profile
    executions: Executions = field(init=False)
    _replay: Replay = field(init=False)
    _base_ps: dict[ProgramKey, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.executions = Executions.of(self.profile)
        self._replay = Replay(self.profile, self.executions)

    def gain(self, change: Change) -> Gain:
        """What the program would gain by a change.

        Raises:
            NeuronToolsError: The profile does not hold its programs, or the change is not possible.
        """
        recorded = self.executions.end_ns - self.executions.start_ns
        changed = self.durations_ns(change)
        return Gain(
            change.text,
            int(recorded.sum()),
            int(changed.sum()),
            self._replay.recorded_ns(),
            self._replay.total_ns(changed),
        )

    def without_host_ns(self) -> int:
        """Time of the program if the host never kept a device waiting: the busiest core's device time."""
        recorded = self.executions.end_ns - self.executions.start_ns
        cores = np.stack([self.executions.process, self.executions.core_index], axis=1)
        _, inverse = np.unique(cores, axis=0, return_inverse=True)
        return int(np.bincount(inverse.ravel(), weights=recorded).max())

    def without_waits_ns(self, waits: Waits) -> int:
        """Time of the program if the host kept the values that it waits for on the device until the end."""
        recorded = self.executions.end_ns - self.executions.start_ns
        return self._replay.total_ns(recorded, without=waits)

    def without_spans_ns(self, spans: Spans, durations_ns: Ints | None = None) -> int:
        """Time of the program if the host left something out.

        Args:
            spans: (spans, 3) process, start and end of what it left out; what it launched there does not run.
            durations_ns: (executions,) device times of what still runs; as recorded, if None.
        """
        recorded = self.executions.end_ns - self.executions.start_ns
        return self._replay.total_ns(recorded if durations_ns is None else durations_ns, removed=spans)

    def launching_spans(self, spans: Spans) -> Ints:
        """(executions,) the span, by its position, in which the host launched each; -1 = in none.

        Args:
            spans: (spans, 3) process, start and end; those of one process do not overlap.
        """
        return self._replay.launching_spans(spans)

    def total_ns(self, durations_ns: Ints) -> int:
        """Time of the program if its executions took `durations_ns`."""
        return self._replay.total_ns(durations_ns)

    def recorded_ns(self) -> int:
        """Time of the program as it was."""
        return self._replay.recorded_ns()

    def durations_ns(self, change: Change) -> Ints:
        """Device time of each execution with the change."""
        durations: Ints = self.executions.end_ns - self.executions.start_ns
        for key in self.executions.keys:
            for origins, positions in self._groups(key, change):
                factor = self._factor(key, change, origins)
                if factor != 1.0:
                    durations[positions] = np.rint(durations[positions] * factor)
        return durations

    def _groups(self, key: ProgramKey, change: Change) -> Sequence[tuple[Origins, Ints]]:
        """Executions of a program that run alike."""
        positions = self.executions.of_program(key)
        if not change.by_origin or key not in self.executions.eager:
            return [((), positions)]
        groups: dict[Origins, list[int]] = {}
        for position in positions:
            groups.setdefault(self.executions.origins(int(position)), []).append(int(position))
        return [(origins, np.array(group)) for origins, group in groups.items()]

    def changes_anything(self, change: Change) -> bool:
        """Whether any program would run differently; a name that nothing has changes nothing."""
        return any(
            self._variant(key, change, origins) is not None
            for key in self.executions.keys
            for origins, _ in self._groups(key, change)
        )

    def _variant(self, key: ProgramKey, change: Change, origins: Origins) -> Variant | None:
        """A program with the change; None where it stays as it is."""
        program, core = self.executions.program(key), self.executions.core
        unchanged = Variant(program, core, CostScale.unchanged(program))
        variant = of_both_cores(unchanged, lambda each: change.apply(each, origins))
        same = variant.program is program and variant.core == core and variant.scale.is_unchanged
        return None if same else variant

    def _factor(self, key: ProgramKey, change: Change, origins: Origins) -> float:
        """Time of a program with the change over its time without."""
        variant = self._variant(key, change, origins)
        if variant is None:
            return 1.0
        base = self._base(key)
        changed = int(simulate(variant.program, variant.core, scale=variant.scale).duration_ps)
        return changed / base if base else 1.0

    def _base(self, key: ProgramKey) -> int:
        if key not in self._base_ps:
            program = self.executions.program(key)
            self._base_ps[key] = int(simulate(program, self.executions.core).duration_ps)
        return self._base_ps[key]
