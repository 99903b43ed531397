"""simulate: when each instruction and DMA of a Program starts and ends on a NeuronCore, and why it waited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuron_tools.hardware import NeuronCore
from neuron_tools.simulator.check import check_references, held_instruction
from neuron_tools.simulator.dma_costs import dma_costs, trigger_costs
from neuron_tools.simulator.instruction_costs import instruction_costs
from neuron_tools.simulator.program import Program

if TYPE_CHECKING:
    from neuron_tools.simulator.kernel import Figures, Times, Work

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]

THROTTLE_DTYPE = np.dtype([("start_ps", "i8"), ("duration_ps", "i8"), ("k", "i4"), ("n", "i4")])
"""One stretch of time during which the Tensor engine may stream k of n cycles."""

NO_CAUSE = -1
"""`wait_cause` of an instruction that no release delayed."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """Times of one execution, picoseconds from its start.

    Attributes:
        start_ps: (instructions,) when each began to execute.
        end_ps: (instructions,) when its result was written. Instructions of one engine overlap: they are
            pipelined.
        ready_ps: (instructions,) when it was at the head of its engine, with the engine and its same-engine
            operands ready; start - ready is the time it waited for semaphores (or for a full DMA queue).
        wait_cause: (instructions,) int32, the release that decided the start: an instruction row (>= 0),
            -2 - dma row, or -1 where nothing delayed it.
        dma_trigger_ps: (dmas,) when the queue got it: the start of its trigger instruction, plus the time
            software takes to make descriptors.
        dma_start_ps: (dmas,) first packet.
        dma_end_ps: (dmas,) completion: last byte and semaphore written.
        throttle: (stretches,) of THROTTLE_DTYPE, without gaps from 0 to the end of the execution.
        duration_ps: The end of the last instruction or DMA.
    """

    start_ps: Int64Array
    end_ps: Int64Array
    ready_ps: Int64Array
    wait_cause: Int32Array
    dma_trigger_ps: Int64Array
    dma_start_ps: Int64Array
    dma_end_ps: Int64Array
    throttle: npt.NDArray[np.void]
    duration_ps: int


def simulate(program: Program, core: NeuronCore) -> Simulation:
    """Time a Program on a core, to the picosecond, and the same every time.

    Rows of different engines may be interleaved in any way: only the order within each engine matters.
    Linear in instructions.

    Raises:
        ProgramError: The program deadlocks or refers to what does not exist; the sentence names the
            instruction and its source line. `check` finds illegal tiles as well.
    """
    from neuron_tools.simulator import kernel

    check_references(program)
    work = _work(program, core)
    times = _empty_times(len(program.instructions), len(program.dmas))
    state = kernel.new_state(work, program.semaphore_count)
    if kernel.simulate_program(work, state, times) == kernel.DEADLOCK:
        raise held_instruction(program, work.engine_start, work.engine_rows, state.position, state.semaphores)
    at, limit = kernel.limit_changes(state)
    duration = max(_latest(times.end_ps), _latest(times.dma_end_ps))
    return Simulation(
        *times,
        throttle=_throttle_table(at, limit, core, duration),
        duration_ps=duration,
    )


def _work(program: Program, core: NeuronCore) -> Work:
    """The program's tables and costs as the kernel reads them."""
    from neuron_tools.simulator import kernel

    instructions, dmas = program.instructions, program.dmas
    engine_start, engine_rows = kernel.engine_order(np.ascontiguousarray(instructions["engine"]))
    interval_ps, latency_ps = instruction_costs(instructions, core)
    dma = instructions["dma"]
    triggers = np.flatnonzero(dma >= 0)
    if len(triggers):
        queue_interval, queue_latency = trigger_costs(program, core)
        interval_ps[triggers] = queue_interval[dma[triggers]]
        latency_ps[triggers] = queue_latency[dma[triggers]]
    queue_start, queue_rows = _queue_order(program, triggers)
    return kernel.Work(
        instructions=instructions,
        waits=program.waits,
        dma_table=dmas,
        interval_ps=interval_ps,
        latency_ps=latency_ps,
        engine_start=engine_start,
        engine_rows=engine_rows,
        queue_start=queue_start,
        queue_rows=queue_rows,
        hazard=kernel.same_engine_hazards(instructions, dmas, engine_start, engine_rows, len(program.tiles)),
        dma=dma_costs(program, core),
        figures=_figures(core),
    )


def _queue_order(program: Program, triggers: npt.NDArray[np.int64]) -> tuple[Int64Array, Int32Array]:
    """DMAs of each queue in the order of their triggers: (start (queues + 1,), rows)."""
    rows = program.instructions["dma"][triggers]
    queue = program.dmas["queue"][rows]
    start = np.zeros(len(program.queues) + 1, np.int64)
    np.cumsum(np.bincount(queue, minlength=len(program.queues)), out=start[1:])
    return start, rows[np.argsort(queue, kind="stable")].astype(np.int32)


def _figures(core: NeuronCore) -> Figures:
    from neuron_tools.simulator import kernel

    return kernel.Figures(
        semaphore_ps=_picoseconds(core.semaphore_ns),
        tensor_semaphore_ps=max(_picoseconds(core.semaphore_tensor_ns - core.semaphore_ns), 0),
        dispatch_ps=_picoseconds(core.tensor_dispatch_ns),
        column_ps=1000.0 / core.tensor_clock_ghz,
        dma_semaphore_ps=_picoseconds(core.dma_semaphore_ns),
        dma_visible_ps=_picoseconds(core.dma_semaphore_latency_ns),
        dma_engines=core.dma_engines,
        outstanding=core.dma_outstanding_per_queue,
        hbm_bytes_per_ps=core.hbm_bandwidth * 1e-12,
        window_ps=max(_picoseconds(core.throttle_window_ns), 1),
        steps=core.throttle_steps,
        initial_k=core.throttle_initial,
        idle_k=core.throttle_idle,
        busy_k=core.throttle_busy,
        threshold=core.throttle_threshold,
    )


def _empty_times(instructions: int, dmas: int) -> Times:
    from neuron_tools.simulator import kernel

    return kernel.Times(
        start_ps=np.zeros(instructions, np.int64),
        end_ps=np.zeros(instructions, np.int64),
        ready_ps=np.zeros(instructions, np.int64),
        wait_cause=np.full(instructions, NO_CAUSE, np.int32),
        dma_trigger_ps=np.zeros(dmas, np.int64),
        dma_start_ps=np.zeros(dmas, np.int64),
        dma_end_ps=np.zeros(dmas, np.int64),
    )


def _throttle_table(
    at: Int64Array, limit: Int64Array, core: NeuronCore, duration: int
) -> npt.NDArray[np.void]:
    start = np.concatenate([[0], at[at < duration]])
    table = np.zeros(len(start), THROTTLE_DTYPE)
    table["start_ps"] = start
    table["duration_ps"] = np.diff(start, append=duration)
    table["k"] = np.concatenate([[core.throttle_initial], limit[at < duration]])
    table["n"] = core.throttle_steps
    return table


def _latest(times: Int64Array) -> int:
    return int(times.max()) if len(times) else 0


def _picoseconds(nanoseconds: float) -> int:
    return round(nanoseconds * 1000.0)


__all__ = ["NO_CAUSE", "THROTTLE_DTYPE", "Simulation", "simulate"]
