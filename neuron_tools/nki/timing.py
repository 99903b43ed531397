"""Times of one kernel call on the simulated NeuronCore, without a capture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuron_tools.frozen import frozen
from neuron_tools.hardware import device_of
from neuron_tools.nki.lowering import lower
from neuron_tools.records.kernel_source import LoweredKernel
from neuron_tools.records.program import Engine, Program
from neuron_tools.records.simulation import Simulation
from neuron_tools.simulator.multi_core import simulate_cores

if TYPE_CHECKING:
    from neuron_tools.nki.kernel import Kernel


@frozen
class KernelTiming:
    """A kernel's results and times.

    Attributes:
        outputs: What the kernel returned.
        kernels: The Program of each physical core, with its source.
        simulations: Times of each.
        launch_overhead_ns: What a measurement on the host has beyond the kernel's own time.
    """

    outputs: Any
    kernels: tuple[LoweredKernel, ...]
    simulations: tuple[Simulation, ...]
    launch_overhead_ns: float

    @property
    def duration_ns(self) -> float:
        """Device time of the call: that of the slowest core."""
        return max(simulation.duration_ps for simulation in self.simulations) / 1000.0

    @property
    def slowest_program(self) -> Program:
        """The Program of the core that takes longest, whose end is the call's."""
        slowest = max(range(len(self.kernels)), key=lambda core: self.simulations[core].duration_ps)
        return self.kernels[slowest].program

    def busy_ns(self) -> dict[str, float]:
        """Time during which each engine of the first core had an instruction under way."""
        engines = self.kernels[0].program.instructions["engine"]
        times = self.simulations[0]
        return {
            engine.title: _covered_ps(times.start_ps[engines == engine], times.end_ps[engines == engine])
            / 1000.0
            for engine in Engine
        }

    def summary(self) -> dict[str, Any]:
        """Names and figures for a report, JSON-ready."""
        program = self.kernels[0].program
        return {
            "kernel": program.name,
            "target": program.target,
            "duration_ns": self.duration_ns,
            "instructions": len(program.instructions),
            "dma_transfers": len(program.dmas),
            "engine_busy_ns": self.busy_ns(),
        }


def _covered_ps(start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> int:
    """Length of the union of intervals that are ordered by their start."""
    if not len(start):
        return 0
    reached = np.maximum.accumulate(end)
    begin = np.maximum(start[1:], reached[:-1])
    return int(end[0] - start[0] + np.maximum(end[1:] - begin, 0).sum())


def time_kernel(
    kernel: Kernel, arguments: tuple[Any, ...], keywords: Mapping[str, Any], values: bool = True
) -> KernelTiming:
    """Run a kernel once, for its values and its times.

    Args:
        values: Compute values; without them only the times are right.

    Raises:
        NkiError: The kernel breaks a rule; the text names its line.
    """
    done = kernel.run(*arguments, values=values, **keywords)
    kernels = tuple(lower(trace, kernel.name) for trace in done.traces)
    core = done.traces[0].core
    simulations = simulate_cores([lowered.program for lowered in kernels], device_of(core))
    return KernelTiming(done.outputs, kernels, simulations, core.launch_overhead_ns)
