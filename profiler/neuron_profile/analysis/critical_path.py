"""The critical path: what, one after the other, made the program take as long as it did.

Inside an execution the path is walked back from its end through the release that decided each start, down to
instructions and transfers; between executions it runs through the host. What lies on it adds up to the window
of the busiest core exactly.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from neuron_profile.analysis.advice.context import Context, ProgramUse
from neuron_tools.frozen import frozen
from neuron_tools.records.program import Engine, Program
from neuron_tools.records.simulation import Simulation

LATENCY = "semaphore"
HOST = "host"
LAUNCH = "launch"


@frozen
class PathEntry:
    """Time on the critical path of one resource for one operation.

    Attributes:
        resource: An engine's title, "DMA", "semaphore" (signals between engines), "launch", or "host".
        operation: Framework name; "" where it belongs to none.
        count: Stretches.
    """

    resource: str
    operation: str
    file: str
    line: int
    path_ns: float
    count: int


@frozen
class CriticalPath:
    """Entries by falling time; they add up to `total_ns`."""

    total_ns: float
    entries: tuple[PathEntry, ...]


def find_critical_path(context: Context) -> CriticalPath | None:
    """The path through a capture; None where the profile does not hold its programs."""
    executions = context.executions
    if executions is None:
        return None
    cores = np.stack([executions.process, executions.core_index], axis=1)
    unique, inverse = np.unique(cores, axis=0, return_inverse=True)
    spans = executions.end_ns - executions.start_ns
    busiest = int(np.argmax(np.bincount(inverse.ravel(), weights=spans, minlength=len(unique))))
    chosen = np.flatnonzero(inverse.ravel() == busiest)
    start_ns, end_ns = executions.start_ns[chosen], executions.end_ns[chosen]
    total = float(end_ns.max() - start_ns.min())
    times: defaultdict[tuple[str, str, str, int], list[float]] = defaultdict(lambda: [0.0, 0])
    for use in context.programs:
        here = chosen[
            (executions.process[chosen] == use.key[0]) & (executions.executable[chosen] == use.key[1])
        ]
        if len(here):
            _add_program(times, use, float(spans[here].sum()), len(here))
    between = total - float(spans[chosen].sum())
    launch = min(between, float(max(0, len(chosen) - 1) * round(executions.core.launch_overhead_ns)))
    times[LAUNCH, "", "", 0] = [launch, max(0, len(chosen) - 1)]
    times[HOST, "", "", 0] = [between - launch, max(0, len(chosen) - 1)]
    entries = [
        PathEntry(*key, path_ns=value[0], count=int(value[1])) for key, value in times.items() if value[0]
    ]
    entries.sort(key=lambda entry: (-entry.path_ns, entry.resource, entry.operation, entry.line))
    return CriticalPath(total, tuple(entries))


def _add_program(
    times: defaultdict[tuple[str, str, str, int], list[float]], use: ProgramUse, span_ns: float, count: int
) -> None:
    """Spread the time of a program's executions over its path."""
    path = program_path(use.program, use.simulation)
    total_ps = sum(path.values()) or 1
    for (resource, hlo), picoseconds in path.items():
        operation, file, line = _place(use.program, hlo)
        entry = times[resource, operation, file, line]
        entry[0] += span_ns * picoseconds / total_ps
        entry[1] += count


def _place(program: Program, hlo: int) -> tuple[str, str, int]:
    rows = program.hlo[hlo].framework if 0 <= hlo < len(program.hlo) else ()
    if not rows:
        return "", "", 0
    operation = program.framework[rows[0]]
    frame = operation.stack[0] if operation.stack else None
    return operation.name, frame.file if frame else "", frame.line if frame else 0


def program_path(program: Program, simulation: Simulation) -> dict[tuple[str, int], int]:
    """Picoseconds on the critical path of one execution, by (resource, HLO row); the sum is its duration."""
    path: defaultdict[tuple[str, int], int] = defaultdict(int)
    table, dmas = program.instructions, program.dmas
    before = _previous_on_engine(table["engine"])
    trigger = np.full(len(dmas), -1, np.int64)
    trigger[table["dma"][table["dma"] >= 0]] = np.flatnonzero(table["dma"] >= 0)
    previous_dma = _previous_on_queue(dmas["queue"], trigger)
    titles = {int(engine): engine.title for engine in Engine}
    now = int(simulation.duration_ps)
    row, is_dma = _last(simulation)
    while now > 0 and row >= 0:
        if is_dma:
            start = int(simulation.dma_start_ps[row])
            path["DMA", int(dmas["hlo"][row])] += max(0, now - start)
            now = min(now, start)
            ahead = int(previous_dma[row])
            waits = ahead >= 0 and int(simulation.dma_end_ps[ahead]) > int(simulation.dma_trigger_ps[row])
            row, is_dma = (ahead, True) if waits else (int(trigger[row]), False)
            reached = simulation.dma_end_ps[row] if is_dma else simulation.end_ps[row]
        else:
            start = int(simulation.start_ps[row])
            path[titles[int(table["engine"][row])], int(table["hlo"][row])] += max(0, now - start)
            now = min(now, start)
            owner, cause = int(table["hlo"][row]), int(simulation.wait_cause[row])
            is_dma = cause <= -2
            row = cause if cause >= 0 else -2 - cause if is_dma else int(before[row])
            if row < 0:
                break
            reached = simulation.dma_end_ps[row] if is_dma else simulation.end_ps[row]
            if cause != -1 and int(reached) < now:
                path[LATENCY, owner] += now - int(reached)
                now = int(reached)
    if now > 0:
        path[LATENCY, -1] += now
    return dict(path)


def _last(simulation: Simulation) -> tuple[int, bool]:
    """The row that ends last, and whether it is a DMA."""
    instruction = int(np.argmax(simulation.end_ps)) if len(simulation.end_ps) else -1
    dma = int(np.argmax(simulation.dma_end_ps)) if len(simulation.dma_end_ps) else -1
    if dma >= 0 and (instruction < 0 or simulation.dma_end_ps[dma] > simulation.end_ps[instruction]):
        return dma, True
    return instruction, False


def _previous_on_engine(engines: np.ndarray) -> np.ndarray:
    """Row of the instruction before each on the same engine; -1 = none."""
    return _previous(engines.astype(np.int64), np.arange(len(engines)))


def _previous_on_queue(queues: np.ndarray, trigger: np.ndarray) -> np.ndarray:
    return _previous(queues.astype(np.int64), np.argsort(trigger, kind="stable"))


def _previous(groups: np.ndarray, order: np.ndarray) -> np.ndarray:
    before = np.full(len(groups), -1, np.int64)
    by_group = order[np.argsort(groups[order], kind="stable")]
    same = groups[by_group[1:]] == groups[by_group[:-1]]
    before[by_group[1:][same]] = by_group[:-1][same]
    return before
