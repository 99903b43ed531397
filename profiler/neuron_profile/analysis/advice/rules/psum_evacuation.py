"""The Tensor engine waits until others have taken its results out of PSUM."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuron_profile.analysis.advice.context import Context, ProgramUse
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.whatif.change import rows_change
from neuron_profile.reports.quantities import duration
from neuron_tools.arrays import Mask
from neuron_tools.records.program import Engine, Memory, Program

MINIMUM_SHARE = 0.05
SHARED = 0.5  # of the time, where two engines take half of the results each


def find(context: Context) -> Iterator[Finding]:
    """A finding where waiting for PSUM takes a twentieth of the device time.

    The gain is that of two engines that take the results out side by side.
    """
    waited_ns = sum(use.count * _waited_ps(use) for use in context.programs) / 1000
    if not waited_ns or waited_ns < MINIMUM_SHARE * context.device_ns:
        return
    hot = context.hotspot(_evacuating)
    yield context.finding(
        "psum_evacuation",
        f"The Tensor engine waits {duration(waited_ns)} for results to be taken out of PSUM",
        "Take results out on the Vector and Scalar engines in turn, sum over more of the contraction before "
        "taking one out, and use all eight banks so that the next product need not wait.",
        rows_change(_evacuating, SHARED),
        place=hot.place,
        evidence={"waited_ns": round(waited_ns), "evacuating_ns": round(hot.busy_ns)},
    )


def _evacuating(program: Program) -> tuple[Mask, Mask]:
    table = program.instructions
    reads = (table["source_memory"] == int(Memory.PSUM)) & (table["engine"] != int(Engine.TENSOR))
    return reads, np.zeros(len(program.dmas), bool)


def _waited_ps(use: ProgramUse) -> int:
    """Time in one execution that Tensor instructions waited for an instruction that reads PSUM."""
    table, simulation = use.program.instructions, use.simulation
    cause = simulation.wait_cause
    held = (table["engine"] == int(Engine.TENSOR)) & (cause >= 0)
    held[held] = _evacuating(use.program)[0][cause[held]]
    return int((simulation.start_ps[held] - simulation.ready_ps[held]).sum())
