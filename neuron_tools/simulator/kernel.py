# mypy: disable-error-code="no-any-return"
"""The compiled event loop of the simulator. Imported only when a Program is timed: it needs numba.

Engines run ahead on their own until a semaphore holds them; completions are then delivered in order of
time. That is exact because semaphores only count up: an instruction found released starts at the later of
its own readiness and the time of the release. Everything is int64 picoseconds, and ties are broken by
engine and queue, never by table row, so the interleaving of engines in the table cannot matter.

Several cores run in one loop: engine e of core c is engine c * ENGINES + e, and rows, semaphores and queues
of the cores follow one another. Cores meet in the HBM that they share and in collectives, which are heads of
DMA queues that start to move when the last participant has come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Int32s, Ints, Table
from neuron_tools.compiled import PART, compiled, compiled_with
from neuron_tools.records.program import Engine, Opcode
from neuron_tools.simulator.dma_costs import SHARE

NEVER = np.int64(2**62)
ENGINES = len(Engine)
PORTS = 2
FINISHED, DEADLOCK = 0, 1

_TENSOR = int(Engine.TENSOR)
_LDWEIGHTS, _MATMUL, _TRANSPOSE = int(Opcode.LDWEIGHTS), int(Opcode.MATMUL), int(Opcode.TRANSPOSE)
_ISSUE, _WEIGHTS, _ARRAY = 0, 1, 2  # what an instruction occupies: its engine, or a part of Tensor
_IDLE, _STREAMING, GATHERING, _COLLECTIVE = 0, 1, 2, 3  # what the head of a DMA queue does

_MOST_TAKEN = 16 / 17  # of an HBM: what collectives leave is not nothing
_ASKS = -(1 << 40)  # `blocked_on` of engine 0 when it asks for ports, of engine e: less e

# Nothing is allocated inside the loop, so reference counts, which cost more than the work, are left out.
_part = compiled_with(_nrt=False, **PART)


class Figures(NamedTuple):
    """Figures of the core that the loop reads, picoseconds unless said."""

    semaphore_ps: int
    tensor_semaphore_ps: int  # more than semaphore_ps when the Tensor engine waits
    dispatch_ps: int
    column_ps: float
    dma_semaphore_ps: int  # writing the semaphore
    dma_visible_ps: int  # and a waiting engine's seeing it
    dma_engines: int
    outstanding: int  # DMAs
    hbm_bytes_per_ps: float
    window_ps: int
    steps: int  # N of the limit K/N
    initial_k: int
    idle_k: int
    busy_k: int
    threshold: float  # share of a window


ROW_COST_DTYPE = np.dtype(
    [
        ("interval_ps", "i8"),
        ("latency_ps", "i8"),
        ("hazard", "i4"),  # see `same_engine_hazards`
        ("ports", "u1"),  # bits of the shared ports that it needs
    ]
)
COLLECTIVE_DTYPE = np.dtype(
    [
        ("members", "i8"),  # participants that it needs
        ("duration_ps", "i8"),  # how long it moves
        ("share", "i8"),  # what it takes of a core's DMA engines meanwhile
        ("hbm_bytes_per_ps", "f8"),  # and of a core's HBM
    ]
)
CORE_DTYPE = np.dtype(
    [
        ("first_queue", "i8"),
        ("end_queue", "i8"),  # behind its last queue
        ("bank", "i8"),  # HBM that it uses
        ("peer", "i8"),  # other core of its logical NeuronCore; itself where there is none
    ]
)


class Work(NamedTuple):
    """A Program with its costs. `engine_*` and `queue_*` list rows in order: CSR of start and rows.

    What belongs to one row is one record: numba takes the longer, the more arrays functions hand on.
    """

    instructions: Table
    waits: Table
    dma_table: Table
    costs: Table  # (rows,) of ROW_COST_DTYPE
    engine_start: Ints
    engine_rows: Int32s
    queue_start: Ints
    queue_rows: Int32s
    dma_costs: Table  # (dmas,) of DMA_COST_DTYPE
    collectives: Table  # (collectives,) of COLLECTIVE_DTYPE
    cores: Table  # (cores,) of CORE_DTYPE
    figures: Figures


class Times(NamedTuple):
    """Results; see `Simulation`."""

    start_ps: Ints
    end_ps: Ints
    ready_ps: Ints
    wait_cause: Int32s
    dma_trigger_ps: Ints
    dma_start_ps: Ints
    dma_end_ps: Ints


class State(NamedTuple):
    """What changes while time goes on; see `new_state`. Few arrays, as every call hands over all of them."""

    semaphores: Ints
    engines: Ints  # (engines, 11) at the places named below
    queues: Ints  # (queues, 6) at the places named below
    cores: Ints  # (cores, 14) at the places named below
    finished: Int32s  # (dmas,) ring of finished DMAs in order
    scalars: Ints  # single numbers, at the places named below
    gathered: Ints  # (collectives,) participants that have come
    hbm: npt.NDArray[
        np.float64
    ]  # (banks, 2) bytes per picosecond asked of each HBM, and what collectives have
    limits: Ints  # (changes, 2) when the Tensor engine's limit changed, and the new K


class WindowState(NamedTuple):
    """Where a core's Tensor engine stands in its window when an execution begins."""

    left_ps: int  # until the window closes
    k: int
    busy_ps: int


# Columns of `engines`: the next row to start, how many of its waits are passed, when it got to the head,
# when it asks to go on (at the beginning, and for shared ports; or NEVER), whether it has its ports, its last
# release and what released it, what it waits for (a semaphore, -1, -2 - queue for back-pressure,
# _ASKS - engine) and the value; the next row whose completion is to be delivered, and when the last was.
POSITION, _WAIT_INDEX, _HEAD_PS, _ASKING_PS, _GRANTED, _RELEASE_PS, _RELEASED_BY = range(7)
_BLOCKED_ON, _BLOCKED_VALUE, _COMPLETED, _COMPLETED_PS = range(7, 11)
# Columns of `queues`: DMAs triggered and done, what the head does, when the last one finished streaming, work
# left of the head and the engine shares that it has.
TRIGGERED, DONE, DOING, _FREE_PS, _REMAINING, _RATE = range(6)

_FINISHED_COUNT, _DELIVERED, _DMA_NOW, _DMA_NEXT = 0, 1, 2, 3
_DEMAND, _TAKEN = 0, 1
# Columns of `cores`: when the weights port and the array of Tensor are free (at 1 and 2), when each shared
# port is free and the rows that have them, and the Tensor engine's window.
_PORT_PS, _PORT_ROW, _WINDOW = 3, 3 + PORTS, 3 + 2 * PORTS
_WINDOW_END, _WINDOW_K, _WINDOW_BUSY, _CHANGES, FIRST_K, _FIRST_CHANGE, _END_CHANGE = range(
    _WINDOW, _WINDOW + 7
)


@compiled
def same_engine_hazards(
    instructions: Table, dma_table: Table, engine_start: Ints, engine_rows: Int32s, tiles: int
) -> Int32s:
    """Row of the last earlier instruction of the same engine that writes a tile each row reads; -1 none."""
    hazard = np.full(instructions.shape[0], -1, np.int32)
    writer = np.full(tiles, -1, np.int32)
    for engine in range(ENGINES):
        first, last = engine_start[engine], engine_start[engine + 1]
        for index in range(first, last):
            row = engine_rows[index]
            read = instructions[row].source
            second = instructions[row].second_source
            dma = instructions[row].dma
            latest = np.int32(-1)
            if 0 <= read < tiles:
                latest = max(latest, writer[read])
            if 0 <= second < tiles:
                latest = max(latest, writer[second])
            if dma >= 0 and 0 <= dma_table[dma].tile < tiles:
                latest = max(latest, writer[dma_table[dma].tile])
            hazard[row] = latest
            written = instructions[row].destination
            if 0 <= written < tiles:
                writer[written] = row
        for index in range(first, last):
            written = instructions[engine_rows[index]].destination
            if 0 <= written < tiles:
                writer[written] = -1
    return hazard


def new_state(
    work: Work, semaphore_count: int, windows: Sequence[WindowState] = (), starts_ps: Sequence[int] = ()
) -> State:
    """The state before anything has run.

    Args:
        work: What will run.
        semaphore_count: Semaphores of all cores.
        windows: One for each core; fresh ones if there are none.
        starts_ps: When each core begins; 0 if there are none.
    """
    queues, cores = len(work.queue_start) - 1, len(work.cores)
    engines = cores * ENGINES
    scalars = np.zeros(4, np.int64)
    scalars[_DMA_NEXT] = NEVER
    begins = np.array(starts_ps or [0] * cores, np.int64)
    engine_table = np.zeros((engines, 11), np.int64)
    engine_table[:, POSITION] = engine_table[:, _COMPLETED] = work.engine_start[:-1]
    engine_table[:, _HEAD_PS] = np.repeat(begins, ENGINES)
    has_rows = work.engine_start[1:] > work.engine_start[:-1]
    engine_table[:, _ASKING_PS] = np.where(has_rows, engine_table[:, _HEAD_PS], NEVER)
    engine_table[:, _BLOCKED_ON] = _ASKS - np.arange(engines)
    engine_table[:, _RELEASED_BY] = -1
    queue_table = np.zeros((queues, 6), np.int64)
    queue_table[:, _FREE_PS] = -1
    core_table = _first_cores(work, windows, begins)
    return State(
        semaphores=np.zeros(semaphore_count, np.int64),
        engines=engine_table,
        queues=queue_table,
        cores=core_table,
        finished=np.empty(len(work.dma_table), np.int32),
        scalars=scalars,
        gathered=np.zeros(len(work.collectives), np.int64),
        hbm=np.zeros((int(work.cores["bank"].max()) + 1, 2), np.float64),
        limits=np.empty((core_table[-1, _END_CHANGE], 2), np.int64),
    )


def _first_cores(work: Work, windows: Sequence[WindowState], begins: Ints) -> Ints:
    """The cores before anything has run: the Tensor engines' windows, with room for their changes."""
    table = np.zeros((len(begins), _END_CHANGE + 1), np.int64)
    fresh = WindowState(work.figures.window_ps, work.figures.initial_k, 0)
    place = 0
    for core, begin in enumerate(begins):
        state = windows[core] if windows else fresh
        last = place + _most_limit_changes(work, core)
        table[core, _WINDOW:] = begin + state.left_ps, state.k, state.busy_ps, 0, state.k, place, last
        place = last
    return table


def limit_changes(state: State, core: int = 0) -> tuple[Ints, Ints]:
    """(times, new K) of every change of a core's Tensor engine's limit, in order of time."""
    first = state.cores[core, _FIRST_CHANGE]
    last = first + state.cores[core, _CHANGES]
    return state.limits[first:last, 0], state.limits[first:last, 1]


def last_window(state: State, core: int) -> WindowState:
    """A core's last window as of its end: `left_ps` is that time from 0."""
    end, k, busy = state.cores[core, _WINDOW : _WINDOW + 3]
    return WindowState(int(end), int(k), int(busy))


def _most_limit_changes(work: Work, core: int) -> int:
    """Bound on the changes: each rise needs a window's threshold of streaming, each fall a rise.

    Windows of a few picoseconds, which only overridden figures can make, record their first changes only.
    """
    tensor = core * ENGINES + _TENSOR
    rows = work.engine_rows[work.engine_start[tensor] : work.engine_start[tensor + 1]]
    needed = max(int(work.figures.threshold * work.figures.window_ps), 1)
    by_work = 2 * (int(work.costs["interval_ps"][rows].sum()) // needed)
    return min(by_work, 4 * len(rows) + 100_000) + 6


# Tensor engine under its utilisation limit


@_part
def _next_window(core: int, state: State, figures: Figures) -> None:
    """Close the current window: the next one's limit follows from how busy this one was."""
    window = state.cores[core]
    busy = window[_WINDOW_BUSY] > figures.threshold * figures.window_ps
    limit = figures.busy_k if busy else figures.idle_k
    place = window[_FIRST_CHANGE] + window[_CHANGES]
    if limit != window[_WINDOW_K] and place < window[_END_CHANGE]:
        state.limits[place, 0] = window[_WINDOW_END]
        state.limits[place, 1] = limit
        window[_CHANGES] += 1
    window[_WINDOW_K] = limit
    window[_WINDOW_BUSY] = 0
    window[_WINDOW_END] += figures.window_ps


@_part
def _move_window(time: int, core: int, state: State, figures: Figures) -> None:
    """Close windows until `time` lies in the current one; idle stretches are skipped at once."""
    window = state.cores[core]
    while window[_WINDOW_END] <= time:
        settled = window[_WINDOW_BUSY] == 0 and window[_WINDOW_K] == figures.idle_k
        behind = (time - window[_WINDOW_END]) // figures.window_ps
        if settled and behind > 0:
            window[_WINDOW_END] += behind * figures.window_ps
        _next_window(core, state, figures)


@_part
def _throttled_end(start: int, work_ps: int, streams: bool, core: int, state: State, figures: Figures) -> int:
    """When `work_ps` of full-rate Tensor time, begun at `start`, is done under the limits."""
    if figures.idle_k == figures.busy_k == figures.initial_k:
        return start + work_ps * figures.steps // figures.busy_k
    window = state.cores[core]
    _move_window(start, core, state, figures)
    time = start
    left = work_ps
    if not streams:  # loading weights follows the limit but does not count as use
        return start + left * figures.steps // window[_WINDOW_K]
    while True:
        possible = (window[_WINDOW_END] - time) * window[_WINDOW_K] // figures.steps
        if possible >= left:
            window[_WINDOW_BUSY] += left
            return time + (left * figures.steps + window[_WINDOW_K] - 1) // window[_WINDOW_K]
        window[_WINDOW_BUSY] += possible
        left -= possible
        time = window[_WINDOW_END]
        _next_window(core, state, figures)


# DMA queues sharing the DMA engines


@_part
def _head(queue: int, work: Work, state: State) -> int:
    """The DMA at the head of a queue."""
    return np.int64(work.queue_rows[work.queue_start[queue] + state.queues[queue, DONE]])


@_part
def _share_engines(core: int, work: Work, state: State) -> None:
    """Give the streaming queues of a core max-min fair shares of its DMA engines."""
    first, last = work.cores[core].first_queue, work.cores[core].end_queue
    left = work.figures.dma_engines * SHARE
    open_queues = 0
    for queue in range(first, last):
        if state.queues[queue, DOING] == _COLLECTIVE:
            left -= work.collectives[work.dma_costs[_head(queue, work, state)].collective].share
            continue
        state.queues[queue, _RATE] = 0
        open_queues += state.queues[queue, DOING] == _STREAMING
    left = max(left, SHARE)
    while open_queues > 0:
        share = left // open_queues
        settled = 0
        for queue in range(first, last):
            if state.queues[queue, DOING] == _STREAMING and state.queues[queue, _RATE] == 0:
                cap = work.dma_costs[_head(queue, work, state)].cap
                if cap <= share:
                    state.queues[queue, _RATE] = cap
                    left -= cap
                    settled += 1
        open_queues -= settled
        if settled == 0:
            for queue in range(first, last):
                if state.queues[queue, DOING] == _STREAMING and state.queues[queue, _RATE] == 0:
                    state.queues[queue, _RATE] = max(share, 1)
            break


@_part
def _share_hbm(work: Work, state: State) -> None:
    """Slow the users of each HBM to its bandwidth, all by the same factor."""
    cores = work.cores.shape[0]
    banks = state.hbm.shape[0]
    for bank in range(banks):
        state.hbm[bank, _DEMAND] = 0.0
        state.hbm[bank, _TAKEN] = 0.0
    for core in range(cores):
        for queue in range(work.cores[core].first_queue, work.cores[core].end_queue):
            if state.queues[queue, DOING] == _STREAMING:
                asked = (
                    state.queues[queue, _RATE] * work.dma_costs[_head(queue, work, state)].hbm_bytes_per_work
                )
                state.hbm[work.cores[core].bank, _DEMAND] += asked
            elif state.queues[queue, DOING] == _COLLECTIVE:
                collective = work.dma_costs[_head(queue, work, state)].collective
                state.hbm[work.cores[core].bank, _TAKEN] += work.collectives[collective].hbm_bytes_per_ps
    for core in range(cores):
        bank = work.cores[core].bank
        left = work.figures.hbm_bytes_per_ps - min(
            state.hbm[bank, _TAKEN], _MOST_TAKEN * work.figures.hbm_bytes_per_ps
        )
        if state.hbm[bank, _DEMAND] <= left:
            continue
        factor = left / state.hbm[bank, _DEMAND]
        for queue in range(work.cores[core].first_queue, work.cores[core].end_queue):
            if state.queues[queue, DOING] != _STREAMING:
                continue
            if work.dma_costs[_head(queue, work, state)].hbm_bytes_per_work > 0:
                state.queues[queue, _RATE] = max(np.int64(state.queues[queue, _RATE] * factor), 1)


@_part
def _activation_ps(queue: int, work: Work, state: State, times: Times) -> int:
    """When the head of an idle queue starts to stream steadily; sets its dma_start_ps."""
    dma = work.queue_rows[work.queue_start[queue] + state.queues[queue, DONE]]
    arrival = times.dma_trigger_ps[dma] + work.dma_costs[dma].delay_ps
    free = state.queues[queue, _FREE_PS]
    times.dma_start_ps[dma] = max(arrival, free)
    return max(arrival + work.dma_costs[dma].startup_ps, free)


@_part
def _plan_dma(work: Work, state: State, times: Times) -> None:
    """Find the next DMA event: a head that finishes or one that starts to stream."""
    soonest = NEVER
    for queue in range(state.queues.shape[0]):
        doing = state.queues[queue, DOING]
        if doing in (_STREAMING, _COLLECTIVE):
            finish = state.scalars[_DMA_NOW] - (
                -state.queues[queue, _REMAINING] // state.queues[queue, _RATE]
            )
            soonest = min(soonest, finish)
        elif doing == _IDLE and state.queues[queue, DONE] < state.queues[queue, TRIGGERED]:
            soonest = min(soonest, _activation_ps(queue, work, state, times))
    state.scalars[_DMA_NEXT] = soonest


@_part
def _gather(queue: int, collective: int, work: Work, state: State, times: Times) -> None:
    """A participant has come; the last one sets all in motion."""
    state.queues[queue, DOING] = GATHERING
    state.gathered[collective] += 1
    if state.gathered[collective] < work.collectives[collective].members:
        return
    now = state.scalars[_DMA_NOW]
    for other in range(state.queues.shape[0]):
        if state.queues[other, DOING] == GATHERING:
            dma = _head(other, work, state)
            if work.dma_costs[dma].collective == collective:
                times.dma_start_ps[dma] = now
                state.queues[other, DOING] = _COLLECTIVE
                state.queues[other, _REMAINING] = work.collectives[collective].duration_ps
                state.queues[other, _RATE] = 1


@_part
def _finish_heads(now: int, elapsed: int, work: Work, state: State, times: Times) -> None:
    """Let all heads move on for `elapsed` and take away those that are done."""
    for queue in range(state.queues.shape[0]):
        doing = state.queues[queue, DOING]
        if doing in (_STREAMING, _COLLECTIVE):
            state.queues[queue, _REMAINING] -= state.queues[queue, _RATE] * elapsed
            if state.queues[queue, _REMAINING] <= 0:
                dma = _head(queue, work, state)
                times.dma_end_ps[dma] = now + work.figures.dma_semaphore_ps
                state.finished[state.scalars[_FINISHED_COUNT]] = dma
                state.scalars[_FINISHED_COUNT] += 1
                state.queues[queue, DONE] += 1
                state.queues[queue, _FREE_PS] = now
                state.queues[queue, DOING] = _IDLE


@_part
def _dma_event(work: Work, state: State, times: Times) -> None:
    """Advance the queues to the next DMA event: finish heads, start others, share the engines again."""
    now = state.scalars[_DMA_NEXT]
    elapsed = now - state.scalars[_DMA_NOW]
    state.scalars[_DMA_NOW] = now
    _finish_heads(now, elapsed, work, state, times)
    for queue in range(state.queues.shape[0]):
        waiting = (
            state.queues[queue, DOING] == _IDLE and state.queues[queue, DONE] < state.queues[queue, TRIGGERED]
        )
        if waiting and _activation_ps(queue, work, state, times) <= now:
            dma = _head(queue, work, state)
            if work.dma_costs[dma].collective >= 0:
                _gather(queue, np.int64(work.dma_costs[dma].collective), work, state, times)
            else:
                state.queues[queue, DOING] = _STREAMING
                state.queues[queue, _REMAINING] = work.dma_costs[dma].work
    for core in range(work.cores.shape[0]):
        _share_engines(core, work, state)
    _share_hbm(work, state)
    _plan_dma(work, state, times)


@_part
def _trigger(dma: int, time: int, work: Work, state: State, times: Times) -> None:
    """Hand a DMA to its queue; its trigger instruction starts at `time`."""
    queue = np.int64(work.dma_table[dma].queue)
    times.dma_trigger_ps[dma] = time + work.dma_costs[dma].issue_ps
    state.queues[queue, TRIGGERED] += 1
    if (
        state.queues[queue, DOING] == _IDLE
        and state.queues[queue, TRIGGERED] == state.queues[queue, DONE] + 1
    ):
        state.scalars[_DMA_NEXT] = min(state.scalars[_DMA_NEXT], _activation_ps(queue, work, state, times))


# Engines


@_part
def _released(engine: int, row: int, work: Work, state: State) -> bool:
    """Whether nothing holds the head of the engine; else notes what it waits for."""
    first = work.instructions[row].first_wait
    while state.engines[engine, _WAIT_INDEX] < work.instructions[row].wait_count:
        wait = work.waits[first + state.engines[engine, _WAIT_INDEX]]
        if state.semaphores[wait.semaphore] < wait.value:
            state.engines[engine, _BLOCKED_ON] = wait.semaphore
            state.engines[engine, _BLOCKED_VALUE] = wait.value
            return False
        state.engines[engine, _WAIT_INDEX] += 1
    dma = work.instructions[row].dma
    if dma >= 0:
        queue = np.int64(work.dma_table[dma].queue)
        if state.queues[queue, TRIGGERED] - state.queues[queue, DONE] >= work.figures.outstanding:
            state.engines[engine, _BLOCKED_ON] = -2 - queue
            return False
    state.engines[engine, _BLOCKED_ON] = -1
    return True


@_part
def _ports_free(engine: int, row: int, work: Work, state: State) -> int:
    """When all shared ports that an instruction needs are free."""
    free = np.int64(0)
    for port in range(PORTS):
        if work.costs[row].ports >> port & 1:
            free = max(free, state.cores[engine // ENGINES, _PORT_PS + port])
    return free


@_part
def _take_ports(engine: int, row: int, start: int, work: Work, state: State, times: Times) -> int:
    """When an instruction starts that has been granted its ports; it keeps them while it streams."""
    core = engine // ENGINES
    for port in range(PORTS):
        if work.costs[row].ports >> port & 1 and state.cores[core, _PORT_PS + port] > start:
            start = state.cores[core, _PORT_PS + port]
            times.wait_cause[row] = state.cores[core, _PORT_ROW + port]
    for port in range(PORTS):
        if work.costs[row].ports >> port & 1:
            state.cores[core, _PORT_PS + port] = start + work.costs[row].interval_ps
            state.cores[core, _PORT_ROW + port] = row
    return start


@_part
def _grant(engine: int, work: Work, state: State) -> bool:
    """Whether an engine that asks gets the ports of its head now; else it asks again when they are free."""
    row = np.int64(work.engine_rows[state.engines[engine, POSITION]])
    free = _ports_free(engine, row, work, state)
    if free > state.engines[engine, _ASKING_PS]:
        state.engines[engine, _ASKING_PS] = free
        return False
    state.engines[engine, _ASKING_PS] = NEVER
    state.engines[engine, _GRANTED] = 1
    return True


@_part
def _run_engine(engine: int, work: Work, state: State, times: Times) -> None:
    """Start instructions of one engine until one is held or none is left."""
    figures = work.figures
    core = engine // ENGINES
    is_tensor = engine % ENGINES == _TENSOR
    last = work.engine_start[engine + 1]
    while state.engines[engine, POSITION] < last:
        row = np.int64(work.engine_rows[state.engines[engine, POSITION]])
        if not _released(engine, row, work, state):
            state.engines[engine, _GRANTED] = 0
            return
        opcode = work.instructions[row].opcode
        unit = _ISSUE
        ready = state.engines[engine, _HEAD_PS]
        if is_tensor:
            if opcode == _LDWEIGHTS:
                unit = _WEIGHTS
                ready = max(ready, state.cores[core, _WEIGHTS])
            elif opcode in (_MATMUL, _TRANSPOSE):
                unit = _ARRAY
                ready = max(ready, state.cores[core, _WEIGHTS], state.cores[core, _ARRAY])
        if work.costs[row].hazard >= 0:
            ready = max(ready, times.end_ps[work.costs[row].hazard] + figures.semaphore_ps)
        start = ready
        if state.engines[engine, _RELEASE_PS] > ready:
            start = state.engines[engine, _RELEASE_PS] + (figures.tensor_semaphore_ps if is_tensor else 0)
            times.wait_cause[row] = state.engines[engine, _RELEASED_BY]
        times.ready_ps[row] = ready
        if work.costs[row].ports > 0:
            if state.engines[engine, _GRANTED] == 0:
                state.engines[engine, _ASKING_PS] = start
                state.engines[engine, _BLOCKED_ON] = _ASKS - engine
                return
            start = _take_ports(engine, row, start, work, state, times)
        state.engines[engine, _GRANTED] = 0
        times.start_ps[row] = start
        interval, latency = work.costs[row].interval_ps, work.costs[row].latency_ps
        if unit == _ISSUE:
            state.engines[engine, _HEAD_PS] = start + interval
            times.end_ps[row] = start + latency
        else:
            free = _throttled_end(start, interval, unit == _ARRAY, core, state, figures)
            state.cores[core, unit] = free
            state.engines[engine, _HEAD_PS] = start + figures.dispatch_ps
            slowed = free - start - interval
            drained = 0
            if slowed > 0 and interval > 0:
                drained = np.int64(work.instructions[row].columns * figures.column_ps * slowed / interval)
            times.end_ps[row] = start + latency + slowed + drained
        if work.instructions[row].dma >= 0:
            _trigger(np.int64(work.instructions[row].dma), start, work, state, times)
        state.engines[engine, POSITION] += 1
        state.engines[engine, _WAIT_INDEX] = 0
        state.engines[engine, _RELEASE_PS] = 0
        state.engines[engine, _RELEASED_BY] = -1


@_part
def _release(
    core: int, semaphore: int, time: int, cause: int, work: Work, state: State, times: Times
) -> None:
    """Let engines that wait for a core's semaphore (or -2 - queue, or to go on) look again at `time`.

    They are the core's own, and for a semaphore those of the core beside it.
    """
    peer = work.cores[core].peer
    for place in range(2 * ENGINES if semaphore >= 0 and peer != core else ENGINES):
        engine = core * ENGINES + place if place < ENGINES else peer * ENGINES + place - ENGINES
        if (
            state.engines[engine, _BLOCKED_ON] != semaphore
            or state.engines[engine, POSITION] >= work.engine_start[engine + 1]
        ):
            continue
        if semaphore >= 0 and state.semaphores[semaphore] < state.engines[engine, _BLOCKED_VALUE]:
            continue
        if semaphore > _ASKS:
            state.engines[engine, _RELEASE_PS] = time
            state.engines[engine, _RELEASED_BY] = cause
        _run_engine(engine, work, state, times)


@_part
def _next_completion(engine: int, work: Work, state: State, times: Times) -> int:
    """When the next signal of an engine becomes visible; skips instructions that signal nothing."""
    while state.engines[engine, _COMPLETED] < state.engines[engine, POSITION]:
        row = work.engine_rows[state.engines[engine, _COMPLETED]]
        if work.instructions[row].signal >= 0:
            return max(times.end_ps[row] + work.figures.semaphore_ps, state.engines[engine, _COMPLETED_PS])
        state.engines[engine, _COMPLETED_PS] = max(
            state.engines[engine, _COMPLETED_PS], times.end_ps[row] + work.figures.semaphore_ps
        )
        state.engines[engine, _COMPLETED] += 1
    return NEVER


@_part
def _core_of(queue: int, work: Work) -> int:
    core = 0
    while work.cores[core].end_queue <= queue:
        core += 1
    return core


@_part
def _deliver(work: Work, state: State, times: Times) -> bool:
    """Deliver the earliest completion or DMA event; False when there is none.

    Of simultaneous ones, engines go first (by number), then finished DMAs, then the DMA queues, then engines
    that ask for ports (by number).
    """
    scalars = state.scalars
    engines = state.engines.shape[0]
    soonest = NEVER
    source = engines + 1
    for engine in range(engines - 1, -1, -1):
        if state.engines[engine, _ASKING_PS] <= soonest:
            soonest = state.engines[engine, _ASKING_PS]
            source = engines + 2 + engine
    if scalars[_DMA_NEXT] <= soonest:
        soonest = scalars[_DMA_NEXT]
        source = engines + 1
    if scalars[_DELIVERED] < scalars[_FINISHED_COUNT]:
        dma = state.finished[scalars[_DELIVERED]]
        visible = times.dma_end_ps[dma] + work.figures.dma_visible_ps
        if visible <= soonest:
            soonest = visible
            source = engines
    for engine in range(engines - 1, -1, -1):
        visible = _next_completion(engine, work, state, times)
        if visible <= soonest:
            soonest = visible
            source = engine
    if soonest >= NEVER:
        return False
    asking = source - engines - 2
    if asking >= 0 and not _grant(asking, work, state):
        return True
    first, last = np.int64(0), np.int64(1)
    if source == engines + 1:
        first = scalars[_FINISHED_COUNT]
        _dma_event(work, state, times)
        last = scalars[_FINISHED_COUNT]
    for index in range(first, last):  # one site for _release: it is large, and compiled where it is called
        if asking >= 0:
            core, semaphore, cause = asking // ENGINES, _ASKS - asking, np.int64(-1)
        elif source < engines:
            cause = np.int64(work.engine_rows[state.engines[source, _COMPLETED]])
            state.engines[source, _COMPLETED] += 1
            state.engines[source, _COMPLETED_PS] = soonest
            core = source // ENGINES
            semaphore = np.int64(work.instructions[cause].signal)
            state.semaphores[semaphore] += 1
        else:
            delivers = source == engines
            dma = np.int64(state.finished[scalars[_DELIVERED] if delivers else index])
            cause = -2 - dma
            core = _core_of(np.int64(work.dma_table[dma].queue), work)
            semaphore = -2 - np.int64(work.dma_table[dma].queue)
            if delivers:
                scalars[_DELIVERED] += 1
                semaphore = np.int64(work.dma_table[dma].semaphore)
                if semaphore < 0:
                    continue
                state.semaphores[semaphore] += work.dma_table[dma].increment
        _release(core, semaphore, soonest, cause, work, state, times)
    return True


@compiled_with(_nrt=False)
def simulate_program(work: Work, state: State, times: Times) -> int:
    """Run a Program to its end.

    Args:
        work: The Program with its costs.
        state: A fresh `new_state`; afterwards `position` tells where each engine stands.
        times: Arrays that receive the results.

    Returns:
        FINISHED, or DEADLOCK if an engine is held for ever.
    """
    engines = state.engines.shape[0]
    while _deliver(work, state, times):
        pass
    for engine in range(engines):
        if state.engines[engine, POSITION] < work.engine_start[engine + 1]:
            return DEADLOCK
    for queue in range(state.queues.shape[0]):
        if state.queues[queue, DONE] < state.queues[queue, TRIGGERED]:
            return DEADLOCK
    return FINISHED
