"""Stages of a pipeline wait for each other: one has more to do, or too few microbatches keep them busy."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.late_lines import finding_of_ranks, late_line
from neuron_profile.analysis.microbatches import microbatch_line
from neuron_profile.analysis.rank_meetings import ABSENT, MESSAGES, RankMeetings, rank_meetings
from neuron_profile.analysis.whatif.executions import ProgramKey
from neuron_profile.analysis.whatif.shorter import Shortening, shorter_share
from neuron_profile.reports.quantities import percent
from neuron_tools.arrays import Ints

MINIMUM_SHARE = 0.05
MINIMUM_EXCESS = 0.1
"""Part by which the busiest stage's work passes the mean."""
TIMES_AS_MANY = (2, 4, 8)
"""Microbatches for one that are tried."""
_SIZES = "SELECT DISTINCT num_elements AS elements FROM CcOp WHERE operation IN ('Send', 'Receive')"
_SENDS = """
SELECT source_file AS file, source_line AS line, count(*) AS messages FROM CcOp
WHERE operation IN ('Send', 'Receive') AND source_file IS NOT NULL GROUP BY ALL
ORDER BY messages DESC, file, line LIMIT 1
"""


def find(context: Context) -> Iterator[Finding]:
    """Findings where ranks hand each other messages and would need a twentieth less once the model is made.

    Uneven stages are played again from message to message, each with the mean of their work. With twice as
    many microbatches what the busiest stage waits is half as long, as a pipeline fills with its first one;
    the host launches twice as much, and the device loads weights twice as often.
    """
    meetings = rank_meetings(context.profile)
    if not meetings.have_messages:
        return
    work = meetings.work_ns()
    made_ns = work[np.argmax(work > 0, axis=0), np.arange(work.shape[1])]  # most of it makes the model
    yield from _uneven(context, meetings, work, made_ns)
    yield from _few(context, meetings, work, made_ns)


def _total_ns(context: Context, meetings: RankMeetings) -> int:
    return int(meetings.end_ns.max()) - context.start_ns


def _is_little(gain_ns: int, total_ns: int, made_ns: Ints) -> bool:
    """Whether a gain is hardly one once the model is made, where a longer program spends its time."""
    return gain_ns < MINIMUM_SHARE * (total_ns - int(made_ns.max()))


def _uneven(context: Context, meetings: RankMeetings, work: Ints, made_ns: Ints) -> Iterator[Finding]:
    total_ns = _total_ns(context, meetings)
    by_stage = work.sum(axis=0) - made_ns
    busiest, mean_ns = int(np.argmax(by_stage)), float(by_stage.mean())
    even = np.rint(work * (mean_ns / np.maximum(by_stage, 1))).astype(np.int64)
    even[np.argmax(work > 0, axis=0), np.arange(work.shape[1])] = made_ns
    gain_ns = meetings.gain_with(even)
    if _is_little(gain_ns, total_ns, made_ns) or by_stage[busiest] < (1 + MINIMUM_EXCESS) * mean_ns:
        return
    line = late_line(context.profile, meetings.processes, meetings.processes[busiest])
    excess = percent(by_stage[busiest] / mean_ns - 1)
    yield finding_of_ranks(
        "pipeline_bubbles",
        f"The stage of rank {meetings.ranks[busiest]} works {excess} longer than the mean of all: the others "
        "wait for it",
        "Cut the model where the times of its parts are even, not their number of layers: embeddings and the "
        "head count too.",
        line,
        {f"rank{rank}_ns": int(ns) for rank, ns in zip(meetings.ranks, by_stage)},
        gain_ns=gain_ns,
        total_ns=total_ns,
    )


def _few(context: Context, meetings: RankMeetings, work: Ints, made_ns: Ints) -> Iterator[Finding]:
    total_ns = _total_ns(context, meetings)
    busiest = int(np.argmax(work.sum(axis=0)))
    waited_ns = int(_waited_ns(meetings, busiest)[1:].sum())
    device_ns = _device_ns(context, meetings.processes[busiest])
    host_ns = max(0, int(work[:, busiest].sum() - made_ns[busiest]) - sum(device_ns.values()))
    rows = _rows(context, meetings)
    costs = {
        times: (times - 1) * host_ns + _longer_ns(context, device_ns, rows, times) for times in TIMES_AS_MANY
    }
    worked_ns = max(sum(device_ns.values()), 1)
    gains = {
        times: round(waited_ns - waited_ns / times * (1 + cost_ns / worked_ns) - cost_ns)
        for times, cost_ns in costs.items()
    }
    times = max(gains, key=lambda each: gains[each])
    if _is_little(gains[times], total_ns, made_ns):
        return
    yield Finding(
        "pipeline_bubbles",
        f"Stages of the pipeline wait for each other {percent(waited_ns / total_ns)} of the time",
        f"Cut each batch into {times} times as many microbatches, and interleave forward and backward passes "
        "(1F1B), so that memory does not grow with their number.",
        _cutting_place(context),
        gain_ns=gains[times],
        device_gain_ns=0,
        total_ns=total_ns,
        evidence={
            "waited_ns": waited_ns,
            "times_as_many": times,
            "messages": sum(operation in MESSAGES for operation in meetings.operations),
        },
    )


def _waited_ns(meetings: RankMeetings, column: int) -> Ints:
    """(meetings of a rank,) how long it waited for the other rank of each."""
    rows = meetings.ready_ns[:, column] != ABSENT
    waited: Ints = meetings.start_ns[rows] - meetings.ready_ns[rows, column]
    return np.maximum(waited, 0)


def _device_ns(context: Context, process: int) -> dict[ProgramKey, int]:
    """Device time of all executions of each program of a rank."""
    executions = context.executions
    if executions is None:
        return {}
    durations = executions.end_ns - executions.start_ns
    return {
        key: int(durations[executions.of_program(key)].sum()) for key in executions.keys if key[0] == process
    }


def _rows(context: Context, meetings: RankMeetings) -> int:
    """Rows of a microbatch: first dimension of a tensor with as many elements as a message; 0 without one."""
    sizes = {row["elements"] for row in context.profile.query(_SIZES).to_pylist()}
    found = Counter(
        tensor.shape[0]
        for use in context.programs
        for tensor in use.program.tensors
        if len(tensor.shape) > 1 and math.prod(tensor.shape) in sizes
    )
    return max(found, key=lambda each: (found[each], each), default=0)


def _longer_ns(context: Context, device_ns: Mapping[ProgramKey, int], rows: int, times: int) -> int:
    """How much longer a rank's device takes for the same rows in so many times as many microbatches."""
    if not rows or context.executions is None:
        return 0
    executions, shortening = context.executions, Shortening(1, rows, max(1, rows // times))
    shares = {key: shorter_share(executions.program(key), executions.core, shortening) for key in device_ns}
    longer_ns = sum(device_ns[key] * (times * share - 1) for key, share in shares.items() if share < 1)
    return max(0, round(longer_ns))


def _cutting_place(context: Context) -> Place:
    """The line that cuts the batch, in the file that sends; else the line that sends."""
    rows = context.profile.query(_SENDS).to_pylist()
    if not rows:
        return Place()
    line = microbatch_line(context.texts.lines(rows[0]["file"]))
    return Place(rows[0]["file"], line or rows[0]["line"])
