"""simulate_cores: Programs of several NeuronCores on one clock, with the HBM and collectives they share."""

from __future__ import annotations

from collections.abc import Sequence

from neuron_tools.hardware import Device, links
from neuron_tools.records.program import Program
from neuron_tools.records.simulation import Simulation, ThrottleState
from neuron_tools.simulator.collectives import meetings
from neuron_tools.simulator.errors import ProgramError
from neuron_tools.simulator.references import check_references
from neuron_tools.simulator.simulation import latest, result, run, split_times
from neuron_tools.simulator.work import make_work


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
    are rank r, and collectives of the rank belong to the Program of either of them; the two meet in their
    barriers.

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
        meetings(programs, ranks, links(device)), [_peer(index, ranks) for index in range(len(ranks))],
    )  # fmt: skip
    times, state = run(list(programs), work, tuple(throttles or ()), tuple(starts_ps or ()))
    return tuple(
        result(own, state, work, core, index, max(latest(own.end_ps), latest(own.dma_end_ps)))
        for index, own in enumerate(split_times(times, programs))
    )


def _peer(index: int, ranks: Sequence[int]) -> int:
    """The other core of a core's logical NeuronCore; itself where that is not simulated."""
    others = (other for other, rank in enumerate(ranks) if rank == ranks[index] and other != index)
    return next(others, index)
