"""Finds the steps of a program by itself, and which of them is typical.

Steps are, in this order: what the program marks (`step` spans of ProfilerStep, JAX's StepTraceAnnotation and
ours, also in traces of torch.profiler); from the end of one optimizer step to the end of the next, on the
device; a range that it names again and again; from the end of one backward pass to that of the next; the
graph that takes most device time, from one start to the next. Those of the process that has most of them
count. Where the host runs ahead of the device, a step lies where the device ran what was submitted in it.

A step in which something is compiled, or that is much longer than the later ones and comes before them, is
told apart: tracing, compiling and first allocations belong to no steady step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

COMPILING, WARM_UP, STEADY, SLOW = "compiling", "warm-up", "steady", "slow"
SLOW_FROM = 1.25
"""A step that takes so many times the median of the steady ones is slow; before them, it warms up."""
FEWEST = 2
MOST = 100_000

_MARKED = """
SELECT coalesce(process_idx, 0) AS process, start_ts AS begin_ns, end_ts AS end_ns, coalesce(name, '') AS name
FROM HostSpan WHERE kind = 'step' ORDER BY process, begin_ns
"""
_MARKED_IN_TRACE = """
SELECT coalesce(span.process_idx, 0) AS process, start_ts AS begin_ns, end_ts AS end_ns, span.name
FROM TraceSpan AS span
SEMI JOIN (SELECT process_idx, track_idx FROM TraceTrack WHERE device_idx IS NULL) AS host
    ON span.process_idx = host.process_idx AND span.track_idx = host.track_idx
WHERE starts_with(span.name, 'ProfilerStep#') ORDER BY process, begin_ns
"""
_OPTIMIZER = """
WITH called AS (
    SELECT *, max(end_ts) OVER (
        PARTITION BY process_idx, thread_idx ORDER BY start_ts, end_ts DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS around_ns
    FROM HostSpan WHERE kind = 'optimizer' AND name LIKE '%.step'
)
SELECT coalesce(process_idx, 0) AS process,
    coalesce(lag(end_ts) OVER (PARTITION BY process_idx, thread_idx, name ORDER BY end_ts), first_ns) AS
    begin_ns,
    end_ts AS end_ns, '' AS name
FROM called, (SELECT min(start_ts) AS first_ns FROM HostSpan)
WHERE around_ns IS NULL OR start_ts >= around_ns ORDER BY process, begin_ns
"""
"""Optimizers that another one calls are part of its step."""
# The host runs ahead of the device: where each optimizer step is seen on the device, it ends there.
_OPTIMIZER_ON_DEVICE = """
WITH operations AS (
    SELECT start_ts, end_ts, coalesce(layer, '') LIKE '/optimizer%' AS updates FROM FrameworkInstruction
    WHERE coalesce(process_idx, 0) = $process AND coalesce(pcore_idx, 0) = (
        SELECT min(coalesce(pcore_idx, 0)) FROM FrameworkInstruction WHERE coalesce(process_idx, 0) = $process
    )
), marked AS (
    SELECT *, updates AND NOT coalesce(lag(updates) OVER (ORDER BY start_ts, end_ts), false) AS begins
    FROM operations
), numbered AS (
    SELECT *, sum(CAST(begins AS INTEGER)) OVER (ORDER BY start_ts, end_ts) AS number FROM marked
)
SELECT max(end_ts) AS end_ns FROM numbered WHERE updates GROUP BY number ORDER BY end_ns
"""
_RANGES = """
WITH named AS (
    SELECT coalesce(process_idx, 0) AS process, start_ts AS begin_ns, end_ts AS end_ns,
        regexp_replace(name, '[#_ ]?[0-9]+$', '') AS family, name
    FROM HostSpan
    WHERE kind = 'range' AND name <> 'Tensor.backward' AND NOT starts_with(name, 'enumerate(DataLoader)')
), repeated AS (
    SELECT family, process FROM named GROUP BY ALL HAVING count(*) >= 3
    ORDER BY sum(end_ns - begin_ns) DESC, family LIMIT 1
)
SELECT process, begin_ns, end_ns, name FROM named SEMI JOIN repeated USING (family, process) ORDER BY begin_ns
"""
"""Ranges that PyTorch or a capture opens around a part of a step are none."""
_BACKWARD = """
SELECT coalesce(process_idx, 0) AS process, end_ts AS end_ns, '' AS name,
    coalesce(lag(end_ts) OVER (PARTITION BY process_idx, thread_idx ORDER BY end_ts), first_ns) AS begin_ns
FROM HostSpan, (SELECT min(start_ts) AS first_ns FROM HostSpan)
WHERE kind = 'range' AND name = 'Tensor.backward' ORDER BY process, begin_ns
"""
_REPEATED = """
WITH executions AS (
    SELECT coalesce(process_idx, 0) AS process, executable_idx, coalesce(pcore_idx, 0) AS core,
        execution_start_ts AS begin_ns, execution_end_ts AS end_ns
    FROM ExecutionInfo JOIN (
        SELECT coalesce(process_idx, 0) AS of_process, executable_idx AS of_executable FROM Executable
        WHERE kind = 'graph'
    ) ON of_process = coalesce(process_idx, 0) AND of_executable = executable_idx
), chosen AS (
    SELECT process, executable_idx, core FROM executions GROUP BY ALL HAVING count(*) >= 3
    ORDER BY sum(end_ns - begin_ns) DESC, process, executable_idx, core LIMIT 1
)
SELECT process, begin_ns, coalesce(lead(begin_ns) OVER (ORDER BY begin_ns), end_ns) AS end_ns, '' AS name
FROM executions SEMI JOIN chosen USING (process, executable_idx, core) ORDER BY begin_ns
"""
_SOURCES = (_MARKED, _MARKED_IN_TRACE, _OPTIMIZER, _RANGES, _BACKWARD, _REPEATED)
_COMPILED = """
SELECT start_ts AS begin_ns, end_ts AS end_ns FROM HostSpan WHERE kind = 'compile' AND coalesce(process_idx,
0) = ?
UNION ALL SELECT start_ts, end_ts FROM Compilation WHERE coalesce(process_idx, 0) = ?
"""
_SUBMITTED = """
SELECT submitted.start_ts AS submitted_ns, max(running.end_ts) OVER (ORDER BY submitted.start_ts) AS end_ns
FROM SystemProfileEvents AS submitted JOIN SystemProfileEvents AS running
    ON submitted.flow_id = running.flow_id AND running.name = 'nc_exec_running'
    AND coalesce(submitted.process_idx, 0) = coalesce(running.process_idx, 0)
WHERE submitted.name = 'nrt_execute' AND coalesce(submitted.process_idx, 0) = ? ORDER BY submitted_ns
"""
"""When the device has ended all that the host submitted up to then."""
_DEVICE = (
    "SELECT min(start_ts) AS begin_ns, max(end_ts) AS end_ns FROM SystemProfileEvents "
    "WHERE name = 'nc_exec_running'",
    "SELECT min(start_ts) AS begin_ns, max(end_ts) AS end_ns FROM Instruction",
)
"""When the device worked: from its executions, or else from its instructions, of which there are many."""


@frozen
class Step:
    """One step.

    Attributes:
        number: Its place, counted from 1.
        kind: `COMPILING`, `WARM_UP`, `STEADY` or `SLOW`.
    """

    number: int
    name: str
    begin_ns: int
    end_ns: int
    kind: str = STEADY

    @property
    def duration_ns(self) -> int:
        """Its length."""
        return self.end_ns - self.begin_ns


@frozen
class Steps:
    """The steps of a program in order of time.

    Attributes:
        typical: The steady step whose length is nearest to the median; None without steps.
        device_ns: From the first execution on a device to the end of the last; None where nothing ran.
    """

    steps: tuple[Step, ...]
    typical: Step | None
    device_ns: tuple[int, int] | None

    @property
    def opening_ns(self) -> tuple[int, int] | None:
        """What is looked at first: a typical step, else all that the device did."""
        return (self.typical.begin_ns, self.typical.end_ns) if self.typical else self.device_ns


def find_steps(profile: Profile) -> Steps:
    """The steps of a profile."""
    extent = _device_ns(profile)
    for source in _SOURCES:
        rows = _of_one_process(profile.query(source).to_pylist())
        if len(rows) >= FEWEST:
            steps = _classified(profile, _on_device(profile, source, rows))
            return Steps(steps, _typical(steps), extent)
    return Steps((), None, extent)


def _device_ns(profile: Profile) -> tuple[int, int] | None:
    """From the first that ran on a device to the end of the last."""
    for query in _DEVICE:
        device = profile.query(query).to_pylist()[0]
        if device["begin_ns"] is not None:
            return int(device["begin_ns"]), int(device["end_ns"])
    return None


def _on_device(profile: Profile, source: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Where the device ran the steps that a source found."""
    if source is _REPEATED:
        return rows
    updates = _updates_on_device(profile, rows) if source is _OPTIMIZER else None
    return updates or _where_the_device_ran(profile, rows)


def _updates_on_device(profile: Profile, rows: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """Optimizer steps as the device ran them; None where those that the host called are others."""
    found = profile.query(_OPTIMIZER_ON_DEVICE, {"process": rows[0]["process"]})["end_ns"].to_pylist()
    if len(found) != len(rows):
        return None
    begins = [rows[0]["begin_ns"], *found]
    return [{**row, "begin_ns": begin, "end_ns": end} for row, begin, end in zip(rows, begins, found)]


def _where_the_device_ran(profile: Profile, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Steps that the host marked, from where the device has ended what was submitted before them.

    Those in which nothing ran are left out; they lie where the host marked them if no more than one is left.
    """
    submitted = profile.query(_SUBMITTED, [rows[0]["process"]])
    times_ns, ends_ns = submitted["submitted_ns"].to_numpy(), submitted["end_ns"].to_numpy()

    def ended(time_ns: int) -> int:
        before = int(times_ns.searchsorted(time_ns))
        return max(time_ns, int(ends_ns[before - 1])) if before else time_ns

    moved = [{**row, "begin_ns": ended(row["begin_ns"]), "end_ns": ended(row["end_ns"])} for row in rows]
    moved = [row for row in moved if row["end_ns"] > row["begin_ns"]]
    return moved if len(moved) >= FEWEST else rows


def _of_one_process(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of the process that has most, without those that lie inside the one before."""
    counts: dict[int, int] = {}
    for row in rows:
        counts[row["process"]] = counts.get(row["process"], 0) + 1
    if not counts:
        return []
    process = min(counts, key=lambda key: (-counts[key], key))
    mine = [row for row in rows if row["process"] == process and row["end_ns"] > row["begin_ns"]]
    outer = mine[:1]
    for row in mine[1:]:
        if row["begin_ns"] >= outer[-1]["end_ns"]:
            outer.append(row)
    return outer[:MOST]


def _classified(profile: Profile, rows: Sequence[dict[str, Any]]) -> tuple[Step, ...]:
    """Steps with their kinds; the first begins no sooner than the first execution, if that lies in it."""
    process = rows[0]["process"]
    compiled = [row for row in profile.query(_COMPILED, [process, process]).to_pylist() if row["end_ns"]]
    steps = [
        Step(number, row["name"] or f"step {number}", int(row["begin_ns"]), int(row["end_ns"]))
        for number, row in enumerate(rows, start=1)
    ]
    steps = [replace(step, kind=COMPILING) if _compiles(step, compiled) else step for step in steps]
    usual = median(step.duration_ns for step in steps[len(steps) // 3 :])
    warming = True
    for place, step in enumerate(steps):
        if step.kind == COMPILING:
            continue
        is_long = step.duration_ns > SLOW_FROM * usual
        warming = warming and is_long and place < len(steps) // 2
        if is_long:
            steps[place] = replace(step, kind=WARM_UP if warming else SLOW)
    return tuple(steps)


def _compiles(step: Step, compiled: Sequence[dict[str, Any]]) -> bool:
    """Whether compiling takes at least a tenth of a step."""
    inside = sum(
        max(0, min(row["end_ns"], step.end_ns) - max(row["begin_ns"], step.begin_ns)) for row in compiled
    )
    return bool(inside * 10 >= step.duration_ns)


def _typical(steps: Sequence[Step]) -> Step | None:
    """The steady step nearest to the median length; of those that are alike, the middle one."""
    steady = [step for step in steps if step.kind == STEADY] or [step for step in steps if step.kind == SLOW]
    steady = steady or list(steps)
    usual = median(step.duration_ns for step in steady)
    middle = steady[len(steady) // 2].number
    return min(steady, key=lambda step: (abs(step.duration_ns - usual), abs(step.number - middle)))
