"""Some NeuronCores of the program do little while others work."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.rank_meetings import rank_meetings

IDLE = 0.5  # of the busiest core's time
MINIMUM_GAIN = 0.05
_LINE = """
SELECT coalesce(source_file, '') AS file, coalesce(source_line, 0) AS line,
    CAST(sum(end_ts - start_ts) AS BIGINT) AS time_ns
FROM FrameworkInstruction
WHERE coalesce(process_idx, 0) = ? AND coalesce(pcore_idx, 0) = ? AND source_file IS NOT NULL
GROUP BY ALL ORDER BY time_ns DESC, file, line LIMIT 1
"""


def find(context: Context) -> Iterator[Finding]:
    """A finding where a core that is used at all is busy for less than half of the busiest one's time.

    The gain is that of the same work spread evenly over the cores that the program uses. Ranks that wait for
    each other have rules of their own, which play them from meeting to meeting.
    """
    executions = context.executions
    if executions is None or context.what_if is None or len(rank_meetings(context.profile)):
        return
    cores, inverse = np.unique(
        np.stack([executions.process, executions.core_index], axis=1), axis=0, return_inverse=True
    )
    durations = executions.end_ns - executions.start_ns
    busy_ns = np.bincount(inverse.ravel(), weights=durations, minlength=len(cores))
    busiest = int(np.argmax(busy_ns))
    idle = np.flatnonzero(busy_ns < IDLE * busy_ns[busiest])
    if len(cores) < 2 or not len(idle):
        return
    factor = busy_ns.mean() / np.maximum(busy_ns, 1)
    spread = np.rint(durations * np.minimum(factor, 1.0)[inverse.ravel()]).astype(np.int64)
    total_ns = context.what_if.recorded_ns()
    gain_ns = total_ns - context.what_if.total_ns(spread)
    if gain_ns < MINIMUM_GAIN * total_ns:
        return
    process, core = (int(value) for value in cores[busiest])
    rows = context.profile.query(_LINE, [process, core]).to_pylist()
    yield Finding(
        "idle_cores",
        f"{len(idle)} of {len(cores)} NeuronCores work for less than half of the time of core {core}",
        "Give every core its share: split the batch evenly (data parallel), or the model's layers by their "
        "time rather than by their number.",
        Place(rows[0]["file"], rows[0]["line"]) if rows else Place(),
        gain_ns=gain_ns,
        device_gain_ns=0,
        total_ns=total_ns,
        evidence={
            "busiest_ns": int(busy_ns[busiest]),
            "mean_ns": int(busy_ns.mean()),
            "idle_cores": len(idle),
        },
    )
