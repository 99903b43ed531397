"""simulate_cores: Programs of several NeuronCores on one clock, with the HBM and collectives they share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from neuron_tools.hardware import Device, links
from neuron_tools.records.program import Program
from neuron_tools.records.simulation import Simulation, ThrottleState
from neuron_tools.simulator.collectives import meetings
from neuron_tools.simulator.errors import ProgramError
from neuron_tools.simulator.references import check_references
from neuron_tools.simulator.simulation import latest, result, run
from neuron_tools.simulator.work import make_work

if TYPE_CHECKING:
    from neuron_tools.simulator.kernel import Times


def simulate_cores(
    programs: Sequence[Program],
    device: Device,
    *,
    cores: Sequence[int] | None = None,
    starts_ps: Sequence[int] | None = None,
    throttles: Sequence[ThrottleState] | None = None,
) -> tuple[Simulation, ...]:
    """Time Programs that run at the same time, one on each of several physical NeuronCores.

    Cores of one HBM stack share its bandwidth (`NeuronCore.hbm_cores` neighbours). Collectives start to move
    when the last of their ranks that is simulated has triggered its part; ranks that are not simulated count
    as ready. A rank is a logical core: with `device.core.logical_core_size` 2, physical cores 2r and 2r + 1
    are rank r, and collectives of the rank belong to the Program of either of them.

    Args:
        programs: One a core.
        device: The machine. `hardware.device(target, lnc=...)`.
        cores: Physical cores, numbered over the whole cluster; 0, 1, 2 ... if None.
        starts_ps: When each core begins, from a common 0; all at 0 if None.
        throttles: State of each Tensor engine's limit to begin with; cores at rest if None.

    Returns:
        The times of each core from the common 0. `duration_ps` is the end of that core's own work.

    Raises:
        ProgramError: A Program refers to what does not exist, ranks disagree about a collective, or something
            is held for ever. The sentence names the rank or the instruction.
    """
    places = tuple(cores) if cores is not None else tuple(range(len(programs)))
    if len(places) != len(programs) or len(set(places)) != len(places):
        raise ProgramError(f"{len(programs)} Programs need as many different cores, not {list(places)}.")
    for program in programs:
        check_references(program)
    core = device.core
    stacks = {stack: row for row, stack in enumerate(dict.fromkeys(p // core.hbm_cores for p in places))}
    ranks = [place // core.logical_core_size for place in places]
    work = make_work(
        programs, core, [stacks[place // core.hbm_cores] for place in places],
        meetings(programs, ranks, links(device)),
    )  # fmt: skip
    times, state = run(list(programs), work, tuple(throttles or ()), tuple(starts_ps or ()))
    return tuple(
        result(own, state, work, core, index, max(latest(own.end_ps), latest(own.dma_end_ps)))
        for index, own in enumerate(_split(times, programs))
    )


def _split(times: Times, programs: Sequence[Program]) -> Iterator[Times]:
    """The times of each core, its causes counted from its own first row."""
    row = dma = 0
    for program in programs:
        last_row, last_dma = row + len(program.instructions), dma + len(program.dmas)
        causes = times.wait_cause[row:last_row]
        own = np.where(causes >= 0, causes - row, np.where(causes < -1, causes + dma, causes))
        yield times._replace(
            start_ps=times.start_ps[row:last_row],
            end_ps=times.end_ps[row:last_row],
            ready_ps=times.ready_ps[row:last_row],
            wait_cause=own.astype(np.int32),
            dma_trigger_ps=times.dma_trigger_ps[dma:last_dma],
            dma_start_ps=times.dma_start_ps[dma:last_dma],
            dma_end_ps=times.dma_end_ps[dma:last_dma],
        )
        row, dma = last_row, last_dma
