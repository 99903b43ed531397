"""simulate: when each instruction and DMA of a Program starts and ends on a NeuronCore, and why it waited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.program import Program
from neuron_tools.records.simulation import THROTTLE_DTYPE, Simulation, ThrottleState
from neuron_tools.simulator.collectives import lone_meetings
from neuron_tools.simulator.cost_scale import CostScale, scaled
from neuron_tools.simulator.references import check_references, held_collective, held_instruction
from neuron_tools.simulator.work import NO_CAUSE, empty_times, make_work

if TYPE_CHECKING:
    from neuron_tools.simulator.kernel import State, Times, Work


def simulate(
    program: Program,
    core: NeuronCore,
    throttle: ThrottleState | None = None,
    scale: CostScale | None = None,
) -> Simulation:
    """Time a Program on a core, to the picosecond, and the same every time.

    Rows of different engines may be interleaved in any way: only the order within each engine matters.
    Linear in instructions. A collective is taken to find all other ranks ready: see `simulate_cores`. Both
    physical cores of a logical one run side by side, on the HBM that they share.

    Args:
        program: What runs.
        core: On what.
        throttle: State of the Tensor engine's limit to begin with; that of a core at rest if None.
        scale: Factors on the costs of its rows, for what-if runs; none if None.

    Raises:
        ProgramError: The program deadlocks or refers to what does not exist; the sentence names the
            instruction and its source line. `check` finds illegal tiles as well.
    """
    programs = program.of_cores
    for each in programs:
        check_references(each)
    peers = range(len(programs) - 1, -1, -1)
    work = make_work(programs, core, [0] * len(programs), lone_meetings(program, core), peers)
    if scale is not None:
        work = scaled(work, scale.of_cores(program))
    times, state = run(list(programs), work, (throttle,) * len(programs) if throttle else ())
    duration = max(latest(times.end_ps), latest(times.dma_end_ps))
    return joined_cores(
        [
            result(own, state, work, core, number, duration)
            for number, own in enumerate(split_times(times, programs))
        ]
    )


def joined_cores(simulations: Sequence[Simulation]) -> Simulation:
    """The times of one or two physical cores, which start and end together."""
    first, *others = simulations
    return replace(first, second=others[0]) if others else first


def split_times(times: Times, programs: Sequence[Program]) -> Iterator[Times]:
    """The times of each core, its causes counted from its own first row; none where it is another core's."""
    if len(programs) == 1:
        yield times
        return
    row = dma = 0
    for program in programs:
        last_row, last_dma = row + len(program.instructions), dma + len(program.dmas)
        causes = times.wait_cause[row:last_row]
        by_instruction = (causes >= row) & (causes < last_row)
        by_dma = (causes <= -2 - dma) & (causes > -2 - last_dma)
        own = np.where(by_instruction, causes - row, np.where(by_dma, causes + dma, NO_CAUSE))
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


def run(
    programs: list[Program], work: Work, throttles: tuple[ThrottleState, ...], starts_ps: tuple[int, ...] = ()
) -> tuple[Times, State]:
    """Run the kernel over joined Programs.

    Raises:
        ProgramError: A deadlock.
    """
    from neuron_tools.simulator import kernel

    times = empty_times(len(work.instructions), len(work.dma_table))
    windows = [kernel.WindowState(state.left_ps, state.k, state.busy_ps) for state in throttles]
    state = kernel.new_state(work, sum(program.semaphore_count for program in programs), windows, starts_ps)
    if kernel.simulate_program(work, state, times) == kernel.DEADLOCK:
        raise _deadlock(programs, work, state)
    return times, state


def result(
    times: Times, state: State, work: Work, core: NeuronCore, index: int, duration_ps: int
) -> Simulation:
    """The results of one core, with its throttling from 0 to `duration_ps`."""
    from neuron_tools.simulator import kernel

    at, limit = kernel.limit_changes(state, index)
    end, k, busy = kernel.last_window(state, index)
    window = work.figures.window_ps
    return Simulation(
        *times,
        throttle=_throttle_table(
            at, limit, int(state.cores[index, kernel.FIRST_K]), core.throttle_steps, duration_ps
        ),
        duration_ps=duration_ps,
        throttle_state=after_idle(ThrottleState(window, k, busy), duration_ps - end + window, core),
    )


def after_idle(state: ThrottleState, idle_ps: int, core: NeuronCore) -> ThrottleState:
    """The state of the Tensor engine's limit after the engine has done nothing for `idle_ps`."""
    window_ps = max(round(core.throttle_window_ns * 1000.0), 1)
    if idle_ps < state.left_ps:
        return ThrottleState(state.left_ps - idle_ps, state.k, state.busy_ps)
    beyond = idle_ps - state.left_ps
    busy = beyond < window_ps and state.busy_ps > core.throttle_threshold * window_ps
    k = core.throttle_busy if busy else core.throttle_idle
    return ThrottleState(window_ps - beyond % window_ps, k, 0)


def _throttle_table(at: Ints, limit: Ints, first_k: int, steps: int, duration: int) -> npt.NDArray[np.void]:
    start = np.concatenate([[0], at[at < duration]])
    table = np.zeros(len(start), THROTTLE_DTYPE)
    table["start_ps"] = start
    table["duration_ps"] = np.diff(start, append=duration)
    table["k"] = np.concatenate([[first_k], limit[at < duration]])
    table["n"] = steps
    return table


def _deadlock(programs: list[Program], work: Work, state: State) -> Exception:
    """The error for what is held: a collective before the instructions that wait for it."""
    from neuron_tools.simulator.kernel import DOING, DONE, ENGINES, GATHERING, POSITION

    gathering = np.flatnonzero(state.queues[:, DOING] == GATHERING)
    if len(gathering):
        queue = int(gathering[0])
        dma = int(work.queue_rows[work.queue_start[queue] + state.queues[queue, DONE]])
        return held_collective(programs, dma)
    rows = semaphores = 0
    for core, program in enumerate(programs):
        ends = work.engine_start[core * ENGINES : (core + 1) * ENGINES + 1]
        positions = state.engines[core * ENGINES : (core + 1) * ENGINES, POSITION]
        last = rows + len(program.instructions)
        if np.any(positions < ends[1:]):
            break
        rows, semaphores = last, semaphores + program.semaphore_count
    return held_instruction(
        program, ends - rows, work.engine_rows[rows:last] - rows, positions - rows,
        state.semaphores[semaphores : semaphores + program.semaphore_count],
    )  # fmt: skip


def latest(times: Ints) -> int:
    """The largest of some times; 0 of none."""
    return int(times.max()) if len(times) else 0
