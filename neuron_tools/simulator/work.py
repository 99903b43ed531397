"""Programs, one a core, as the tables that the kernel reads: costs evaluated, rows of the cores joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Int32s, Ints
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.program import Program, peer_semaphore
from neuron_tools.records.rows import copied
from neuron_tools.simulator.dma_costs import SHARE, dma_costs, trigger_costs
from neuron_tools.simulator.instruction_costs import instruction_costs, shared_ports

if TYPE_CHECKING:
    from neuron_tools.simulator.kernel import Figures, Times, Work


NO_CAUSE = -1
_PACKET_BYTES = 65536
"""Of a collective (the same page); other transfers have `dma_maximum_packet_bytes`."""


class Meetings:
    """Which collective each DMA takes part in, how many ranks each needs, and how long it moves.

    `part` lists by core the collective of each DMA (-1 = none), counted over all cores. `traffic` is what a
    rank's DMA engines move meanwhile, and what that reads and writes of its HBM, in bytes.
    """

    def __init__(
        self,
        part: Sequence[Int32s],
        members: Sequence[int],
        duration_ps: Sequence[int],
        traffic: Sequence[tuple[float, float]],
    ) -> None:
        self.part = tuple(part)
        self.members = np.array(members, np.int64)
        self.duration_ps = np.array(duration_ps, np.int64)
        self.moved_bytes, self.hbm_bytes = np.array(traffic, np.float64).reshape(-1, 2).T


def make_work(
    programs: Sequence[Program],
    core: NeuronCore,
    banks: Sequence[int],
    meetings: Meetings,
    peers: Sequence[int] = (0,),
) -> Work:
    """The tables of Programs that run together, one a core.

    Args:
        programs: One a core, references checked.
        core: What every core is.
        banks: The HBM that each core uses, counted from 0.
        meetings: Their collectives.
        peers: Of each core, the one that it makes up a logical NeuronCore with; itself where there is none.
    """
    parts = [
        _part(program, core, part, meetings) for program, part in zip(programs, meetings.part, strict=True)
    ]
    if len(parts) == 1:
        return parts[0]._replace(waits=_moved_waits(parts[0].waits, 0, 0))
    return _join(programs, parts, banks, peers)


def empty_times(instructions: int, dmas: int) -> Times:
    """Zeroed results."""
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


def _part(program: Program, core: NeuronCore, part: Int32s, meetings: Meetings) -> Work:
    """The tables of one core alone."""
    from neuron_tools.compiled import by_group
    from neuron_tools.simulator import kernel

    instructions, dmas = program.instructions, program.dmas
    engine_start, engine_rows = by_group(np.ascontiguousarray(instructions["engine"]), kernel.ENGINES)
    triggers = np.flatnonzero(instructions["dma"] >= 0)
    costs = _row_costs(program, core, triggers)
    costs["hazard"] = kernel.same_engine_hazards(
        instructions, dmas, engine_start, engine_rows, len(program.tiles)
    )
    queue_start, queue_rows = _queue_order(program, triggers)
    return kernel.Work(
        instructions=instructions,
        waits=program.waits,
        dma_table=dmas,
        costs=costs,
        engine_start=engine_start,
        engine_rows=engine_rows,
        queue_start=queue_start,
        queue_rows=queue_rows,
        dma_costs=_dma_costs(program, core, part),
        collectives=_collectives(meetings, core),
        cores=np.array([(0, len(program.queues), 0, 0)], kernel.CORE_DTYPE),
        figures=_figures(core),
    )


def _row_costs(program: Program, core: NeuronCore, triggers: Ints) -> npt.NDArray[np.void]:
    """What each instruction costs, but for its hazard."""
    from neuron_tools.simulator import kernel

    costs = np.empty(len(program.instructions), kernel.ROW_COST_DTYPE)
    costs["interval_ps"], costs["latency_ps"] = instruction_costs(program.instructions, core)
    costs["ports"] = shared_ports(program.instructions, core)
    if len(triggers):
        dma = program.instructions["dma"][triggers]
        queue_interval, queue_latency = trigger_costs(program, core)
        costs["interval_ps"][triggers] = queue_interval[dma]
        costs["latency_ps"][triggers] = queue_latency[dma]
    return costs


def _dma_costs(program: Program, core: NeuronCore, part: Int32s) -> npt.NDArray[np.void]:
    costs = dma_costs(program, core)
    costs["collective"] = part
    return costs


def _collectives(meetings: Meetings, core: NeuronCore) -> npt.NDArray[np.void]:
    from neuron_tools.simulator import kernel

    table = np.empty(len(meetings.members), kernel.COLLECTIVE_DTYPE)
    table["members"], table["duration_ps"] = meetings.members, meetings.duration_ps
    table["share"] = _engine_shares(meetings, core)
    table["hbm_bytes_per_ps"] = meetings.hbm_bytes / meetings.duration_ps
    return table


def _engine_shares(meetings: Meetings, core: NeuronCore) -> Ints:
    """What a collective takes of a core's DMA engines, in SHARE-ths of one.

    It gets most of an engine that others use too: its packets are longer. Source: aws-neuron-sdk
    neuron-runtime/explore/compute-comm-overlap.rst, "Adjusting Static DMA Priority".
    """
    engines = meetings.moved_bytes / meetings.duration_ps / (core.dma_engine_bandwidth * 1e-12)
    most = core.dma_engines * _PACKET_BYTES / (_PACKET_BYTES + core.dma_maximum_packet_bytes)
    return np.asarray(np.minimum(engines, most) * SHARE).astype(np.int64)


def _queue_order(program: Program, triggers: Ints) -> tuple[Ints, Int32s]:
    """DMAs of each queue in the order of their triggers: (start (queues + 1,), rows)."""
    rows = program.instructions["dma"][triggers]
    queue = program.dmas["queue"][rows]
    start = np.zeros(len(program.queues) + 1, np.int64)
    np.cumsum(np.bincount(queue, minlength=len(program.queues)), out=start[1:])
    return start, rows[np.argsort(queue, kind="stable")].astype(np.int32)


def _join(
    programs: Sequence[Program], parts: Sequence[Work], banks: Sequence[int], peers: Sequence[int]
) -> Work:
    """The tables of all cores behind one another, their references moved."""
    moved, rows, waits, dmas, queues = [], 0, 0, 0, 0
    semaphores = np.cumsum([0, *(program.semaphore_count for program in programs)]).tolist()
    for number, (program, part) in enumerate(zip(programs, parts, strict=True)):
        part = part._replace(waits=_moved_waits(part.waits, semaphores[number], semaphores[peers[number]]))
        moved.append(_moved(part, rows, waits, dmas, queues, semaphores[number]))
        rows, waits, dmas = rows + len(part.instructions), waits + len(part.waits), dmas + len(part.dma_table)
        queues += len(program.queues)
    last = np.array([rows], np.int64), np.array([dmas], np.int64)
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in moved])
        for name in ("instructions", "waits", "dma_table", "costs", "engine_rows", "queue_rows", "dma_costs")
    }
    return parts[0]._replace(
        **joined,
        engine_start=np.concatenate([*(part.engine_start[:-1] for part in moved), last[0]]),
        queue_start=np.concatenate([*(part.queue_start[:-1] for part in moved), last[1]]),
        cores=_cores(programs, banks, peers),
    )


def _cores(programs: Sequence[Program], banks: Sequence[int], peers: Sequence[int]) -> npt.NDArray[np.void]:
    from neuron_tools.simulator import kernel

    ends = np.cumsum([len(program.queues) for program in programs])
    table = np.empty(len(programs), kernel.CORE_DTYPE)
    table["first_queue"], table["end_queue"] = np.concatenate([[0], ends[:-1]]), ends
    table["bank"], table["peer"] = banks, peers
    return table


def _moved(part: Work, rows: int, waits: int, dmas: int, queues: int, semaphores: int) -> Work:
    """A core's tables as they stand behind those of the cores before it."""
    instructions, dma_table, costs = map(copied, (part.instructions, part.dma_table, part.costs))
    instructions["first_wait"] += waits
    _shift(instructions, "signal", semaphores)
    _shift(instructions, "dma", dmas)
    _shift(dma_table, "semaphore", semaphores)
    _shift(costs, "hazard", rows)
    dma_table["queue"] += queues
    return part._replace(
        instructions=instructions,
        dma_table=dma_table,
        engine_start=part.engine_start + rows,
        engine_rows=part.engine_rows + np.int32(rows),
        queue_start=part.queue_start + dmas,
        queue_rows=part.queue_rows + np.int32(dmas),
        costs=costs,
    )


def _moved_waits(waits: npt.NDArray[np.void], own: int, peer: int) -> npt.NDArray[np.void]:
    """Waits for semaphores that stand behind those of other cores.

    Args:
        own: The first semaphore of the core.
        peer: The first of the other core of its logical NeuronCore.
    """
    other = waits["semaphore"] < -1
    if not own and not other.any():
        return waits
    moved = copied(waits)
    moved["semaphore"] = np.where(other, peer_semaphore(waits["semaphore"]) + peer, waits["semaphore"] + own)
    return moved


def _shift(table: npt.NDArray[np.void], column: str, offset: int) -> None:
    table[column] += np.where(table[column] >= 0, offset, 0).astype(table[column].dtype)


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


def _picoseconds(nanoseconds: float) -> int:
    return round(nanoseconds * 1000.0)


__all__ = ["NO_CAUSE", "Meetings", "empty_times", "make_work"]
