"""Busy and idle time of each engine, and why it was idle, to the nanosecond.

The window of a core runs from the start of its first execution to the end of its last; of a range of a
profile it
is the range. Each engine's window
is divided into: busy; waiting for a DMA; for another engine; other delays inside an execution
(issue, a full queue); finished before the rest of the execution; and no execution, when the device waits
for the host.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuron_profile.analysis.time.core_spans import integers
from neuron_profile.analysis.time.repeats import Repeat, find_repeats
from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_CORES = """
SELECT DISTINCT coalesce(process_idx, 0) AS process, coalesce(pcore_idx, 0) AS core
FROM Instruction ORDER BY ALL
"""
_EXECUTIONS = """
SELECT start_ts AS start_ns, end_ts AS end_ns FROM SystemProfileEvents
WHERE name = 'nc_exec_running' AND coalesce(process_idx, 0) = ? AND coalesce(nc_idx, 0) = ? ORDER BY start_ts
"""
# A profile of the device alone tells of no executions: all that ran counts as one.
_WHOLE = """
SELECT min(start_ts) AS start_ns, max(end_ts) AS end_ns FROM Instruction
WHERE coalesce(process_idx, 0) = ? AND coalesce(pcore_idx, 0) = ?
"""
_INSTRUCTIONS = """
SELECT start_ts AS start_ns, end_ts AS end_ns, coalesce(dma_wait_time_ns, 0) AS dma_ns,
    coalesce(evt_wait_time_ns, 0) AS wait_ns
FROM Instruction
WHERE coalesce(process_idx, 0) = ? AND coalesce(pcore_idx, 0) = ? AND engine = ?
    AND start_ts >= ? AND start_ts < ?
ORDER BY start_ts, end_ts
"""
_EVER = (-(1 << 62), 1 << 62)
_ENGINES = """
SELECT DISTINCT engine FROM Instruction
WHERE coalesce(process_idx, 0) = ? AND coalesce(pcore_idx, 0) = ? AND engine IS NOT NULL ORDER BY engine
"""


@frozen
class EngineTime:
    """How one engine of one core spent the core's window; all parts in ns, and their sum is the window.

    Attributes:
        host_ns: No execution ran on the core.
        finished_ns: Its own work of the execution was done.
        other_ns: Inside an execution for another reason: issue, queues, the start of the execution.
    """

    process: int
    core: int
    engine: str
    window_ns: int
    busy_ns: int
    dma_ns: int
    engine_ns: int
    other_ns: int
    finished_ns: int
    host_ns: int


PARTS = ("busy_ns", "dma_ns", "engine_ns", "other_ns", "finished_ns", "host_ns")


def idle_reasons(profile: Profile) -> tuple[EngineTime, ...]:
    """Engines by process, core and name; () where the profile has no instructions."""
    found = []
    for row in profile.query(_CORES).to_pylist():
        where = [row["process"], row["core"]]
        executions = profile.query(_EXECUTIONS, where)
        if not executions.num_rows:
            executions = profile.query(_WHOLE, where)
        starts, ends = integers(executions, "start_ns"), integers(executions, "end_ns")
        window = int(ends.max() - starts[0])
        if profile.range_ns is not None:
            low, high = profile.range_ns
            starts, ends, window = np.maximum(starts, low), np.minimum(ends, high), high - low
        repeats = find_repeats(profile, (row["process"], row["core"]))
        for engine in profile.query(_ENGINES, where).to_pylist():
            here = _Engine(row["process"], row["core"], engine["engine"])
            if repeats is None:
                columns = _instructions(profile, here, _EVER)
                found.append(_engine_time(here, starts, ends, columns, window))
            else:
                found.append(_repeated_time(profile, here, starts, ends, repeats))
    return tuple(found)


@frozen
class _Engine:
    process: int
    core: int
    name: str


def _instructions(profile: Profile, engine: _Engine, within: tuple[int, int]) -> list[Ints]:
    """Start, end, wait for DMA and other waits of an engine's instructions in a stretch of time."""
    rows = profile.query(_INSTRUCTIONS, [engine.process, engine.core, engine.name, *within])
    return [integers(rows, name) for name in ("start_ns", "end_ns", "dma_ns", "wait_ns")]


def _repeated_time(
    profile: Profile, engine: _Engine, starts: Ints, ends: Ints, repeats: Sequence[Repeat]
) -> EngineTime:
    """The same from one execution of each graph, as often as it ran."""
    parts = dict.fromkeys(PARTS, 0)
    window, covered = int(ends.max() - starts[0]), 0
    for repeat in repeats:
        begin, end = np.array([repeat.begin_ns]), np.array([repeat.end_ns])
        columns = _instructions(profile, engine, (repeat.begin_ns, repeat.end_ns))
        duration = repeat.end_ns - repeat.begin_ns
        covered += repeat.count * duration
        if not len(columns[0]):
            parts["finished_ns"] += repeat.count * duration
            continue
        once = _engine_time(engine, begin, end, columns, duration)
        for name in PARTS:
            parts[name] += repeat.count * int(getattr(once, name))
    parts["host_ns"] = window - covered
    return EngineTime(engine.process, engine.core, engine.name, window, **parts)


def _engine_time(
    engine: _Engine, starts: Ints, ends: Ints, columns: Sequence[Ints], window: int
) -> EngineTime:
    begin, end, dma, wait = columns
    covered = _union_ns(starts, ends)
    execution = np.clip(np.searchsorted(starts, begin, side="right") - 1, 0, len(starts) - 1)
    begin, end = np.maximum(begin, starts[execution]), np.minimum(end, ends[execution])
    end = np.maximum(begin, end)
    first = np.concatenate([[True], execution[1:] != execution[:-1]])
    # The engine is free when all that came before in the execution has ended; executions do not overlap.
    reached = np.maximum.accumulate(np.maximum(end, starts[execution]))
    free = np.where(first, starts[execution], np.concatenate([[0], reached[:-1]]))
    gap = np.maximum(begin - free, 0)
    busy = np.maximum(end - np.maximum(begin, free), 0)
    waited_dma = np.minimum(gap, dma)
    waited_engine = np.minimum(gap - waited_dma, wait)
    total = int(busy.sum()), int(waited_dma.sum()), int(waited_engine.sum()), int(gap.sum())
    last = np.concatenate([np.flatnonzero(first)[1:] - 1, [len(execution) - 1]])
    finished = int((ends[execution[last]] - np.minimum(reached[last], ends[execution[last]])).sum())
    unused = covered - total[0] - total[3] - finished  # executions in which the engine did nothing
    return EngineTime(
        engine.process, engine.core, engine.name, window, busy_ns=total[0], dma_ns=total[1],
        engine_ns=total[2], other_ns=total[3] - total[1] - total[2], finished_ns=finished + unused,
        host_ns=window - covered,
    )  # fmt: skip


def _union_ns(starts: Ints, ends: Ints) -> int:
    reached = np.maximum.accumulate(ends)
    before = np.concatenate([[starts[0]], reached[:-1]])
    return int(np.maximum(ends - np.maximum(starts, before), 0).sum())
